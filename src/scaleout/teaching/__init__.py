"""What an instructor does: give out a copy of the course, and bring together what a class has done."""
