#!/bin/bash
# train.py until it is done, however often its time is up: sbatch again.sh
#SBATCH --job-name=again
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:05:00
#SBATCH --output=again-%j.txt
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@60

export PATH="$PWD/../../.venv/bin:$PATH"
export OMP_NUM_THREADS=1

# TODO 7: when the warning comes, send it on to srun, whose process is $ranks:
# all ranks then save and stop. Wait until they have, and put this job, whose
# number is $SLURM_JOB_ID, back into the queue.  (6 lines)
trap 'exit 1' USR1
srun --mpi=pmi2 --kill-on-bad-exit=1 \
    python -m mpi4py train.py --folder "kept-$SLURM_JOB_ID" &
ranks=$!
wait "$ranks"
