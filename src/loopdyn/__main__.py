"""``python -m loopdyn`` is the same as ``loopdyn``."""

from loopdyn_command import main

main()
