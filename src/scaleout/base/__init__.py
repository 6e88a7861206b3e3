"""What all rooms share; it imports nothing of ours."""
