"""loopdyn: dynamics of closed-loop and constrained rigid multibody systems.

The public names are listed in ``__init__.pyi`` and imported when they are first asked for; the arguments of what users
call are checked from then on (:mod:`loopdyn.arguments`).
"""

from importlib import import_module
from typing import Any

import lazy_loader

# Packages whose further names users meet: ld.forces.JointTendon.
_PACKAGES = ("constraints", "forces", "formulations", "integrators", "joints")

_found, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

_KNOWN: dict[str, Any] = {}  # what was asked for; as globals they would be taken for functions of this file


def __getattr__(name: str) -> Any:
    if name in _KNOWN:
        return _KNOWN[name]
    if name == "__version__":
        thing = _version()
    elif name in __all__:
        thing = _checked(name)
    elif name in _PACKAGES:
        thing = import_module(f"loopdyn.{name}")
    else:
        raise AttributeError(f"module 'loopdyn' has no attribute '{name}'{_hint(name)}")
    _KNOWN[name] = thing
    return thing


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("loopdyn")
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "unknown"


def _checked(name: str) -> Any:
    """Public object of this name; the arguments of everything that its import has loaded are checked from now on."""
    from loopdyn.arguments import check, check_loaded

    thing = _found(name)
    if callable(thing):
        globals().pop(name, None)  # where lazy_loader leaves it if its module has the same name
    check_loaded(__all__)
    return check(thing, __name__)


def _hint(name: str) -> str:
    from loopdyn.quantities.wording import NOT_OFFERED

    hint = NOT_OFFERED.get(name.lower(), "")
    return hint and f". {hint}"
