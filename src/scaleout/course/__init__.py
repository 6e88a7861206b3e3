"""What attendees use: labs, their checks and masters, the tour."""
