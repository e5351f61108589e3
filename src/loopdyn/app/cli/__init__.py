"""The command line: a file per command, shared parts in `answers` (words and exit codes), `models` and `options`.

Exit codes: 0 done, 1 the model failed or a file cannot be written (with a message), 2 wrong use of the command, 130
stopped by Ctrl-C.
"""

from loopdyn.app.cli.application import app, main

__all__ = ["app", "main"]
