"""Where a job runs, if not here: on hosts over ssh, in a queue, on another MPI library."""
