"""Where a job runs: here, over ssh, or in a queue."""
