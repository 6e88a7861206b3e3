"""What attendees and instructors use: labs, their checks and masters, the tour, a class."""
