"""The command line: a file per command, shared parts in `answers` (words and exit codes), `models` and `options`.

Exit codes: 0 done, 1 the model failed or a file cannot be written (with a message), 2 wrong use of the command, 130
stopped by Ctrl-C.
"""

from typing import Any

from loopdyn.app.cli.application import main, program

__all__ = ["main", "program"]


def __getattr__(name: str) -> Any:
    if name == "app":  # all commands, for tests and the page of commands; the program prepares only what is called
        return program()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
