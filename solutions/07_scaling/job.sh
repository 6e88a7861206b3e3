#!/bin/bash
# train.py on two nodes, by Slurm. In a terminal, in the folder of this file:
#
#     sbatch job.sh

# TODO 5: ask for two nodes with one task each, two cores for each task, five
# minutes at most, and the output in train-JOBID.txt. Below that, give each
# task as many threads as it has cores, and start all tasks.  (8 lines)
# BEGIN SOLUTION
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --time=00:05:00
#SBATCH --output=train-%j.txt

export PATH="$PWD/../../.venv/bin:$PATH"
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
srun --mpi=pmi2 --cpus-per-task="$SLURM_CPUS_PER_TASK" \
    python -m mpi4py train.py --folder "kept-$SLURM_JOB_ID"
# STARTER: export PATH="$PWD/../../.venv/bin:$PATH"
# STARTER: python -m mpi4py train.py --folder "kept-$SLURM_JOB_ID"
# END SOLUTION
