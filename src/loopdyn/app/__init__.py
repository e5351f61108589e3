"""The command line and what is started from it."""
