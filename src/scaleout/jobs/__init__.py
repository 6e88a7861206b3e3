"""One job on this machine, from its command to its end."""
