"""The command ``loopdyn``: it takes Ctrl-C from its first moment on, also while loopdyn is being imported."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C before a command has begun is answered in words, with the exit code 130."""
    try:
        from loopdyn.app.cli import main as run

        run()
    except KeyboardInterrupt:
        print("stopped by Ctrl-C before anything was done", file=sys.stderr)
        sys.exit(130)
