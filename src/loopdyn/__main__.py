"""``python -m loopdyn`` is the same as ``loopdyn``."""

from loopdyn.cli import main

main()
