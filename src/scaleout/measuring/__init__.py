"""What a job is measured by, and what was measured: one row a job."""
