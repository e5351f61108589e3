"""The command ``loopdyn``: it takes Ctrl-C from its first moment to its last, also while loopdyn is being imported."""

import signal
import sys


def main() -> None:
    """Run the command line; Ctrl-C outside of a command is answered in words, too, with the exit code 130."""
    said = "stopped by Ctrl-C before anything was done"
    try:
        from loopdyn.app.cli import main as run

        said = "stopped by Ctrl-C"
        run()
    except KeyboardInterrupt:
        print(said, file=sys.stderr)
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: a Ctrl-C while Python ends must not kill it
