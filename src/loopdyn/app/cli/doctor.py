"""``loopdyn doctor``: diagnostics of the installation."""

from __future__ import annotations

from loopdyn.app.cli.answers import print_lines


def doctor() -> None:
    """Show versions, the source of compiled kernels, and missing packages.

    Example: loopdyn doctor
    """
    from loopdyn.app.doctor import report

    rows = report()
    width = max(len(name) for name, _ in rows)
    print_lines(*(f"{name:{width}}  {value}" for name, value in rows))
