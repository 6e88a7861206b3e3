"""What each TODO of 06_tuning is checked by: a few steps on two ranks, and what the record says of them."""
