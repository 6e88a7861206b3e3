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
again() {
    kill -USR1 "$ranks"   # srun hands it on to all ranks, which save and stop
    wait "$ranks"
    scontrol requeue "$SLURM_JOB_ID"   # back into the queue, same number
}
trap again USR1
srun --mpi=pmi2 --kill-on-bad-exit=1 \
    python -m mpi4py train.py --folder "kept-$SLURM_JOB_ID" &
ranks=$!
wait "$ranks"
