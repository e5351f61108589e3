"""loopdyn: dynamics of closed-loop and constrained rigid multibody systems.

The public names are listed in ``__init__.pyi`` and imported when they are first asked for; the arguments of what users
call are checked from then on (:mod:`loopdyn.arguments`).
"""

from typing import Any

from loopdyn.public_names import offer

_found, __dir__, __all__ = offer(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    return _found(name)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("loopdyn")
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "unknown"
