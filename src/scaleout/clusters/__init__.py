"""Where a job runs when it is not this machine alone: sites, hosts over ssh, Slurm, other MPI
libraries."""
