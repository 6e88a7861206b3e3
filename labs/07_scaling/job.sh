#!/bin/bash
# train.py on two nodes, by Slurm. In a terminal, in the folder of this file:
#
#     sbatch job.sh

# TODO 5: ask for two nodes with one task each, two cores for each task, five
# minutes at most, and the output in train-JOBID.txt. Below that, give each
# task as many threads as it has cores, and start all tasks.  (8 lines)
export PATH="$PWD/../../.venv/bin:$PATH"
python -m mpi4py train.py --folder "kept-$SLURM_JOB_ID"
