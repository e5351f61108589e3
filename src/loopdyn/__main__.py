"""``python -m loopdyn`` is the same as ``loopdyn``."""

from loopdyn.app.cli import main

main()
