"""Systems of python-control: state space of a linearization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopdyn.errors import LoopdynError


def control() -> Any:
    """Return the module `control`; raises with the command that installs it."""
    try:
        import control as module
    except ImportError:
        raise LoopdynError("python-control is not installed. Install it: pip install 'loopdyn[control]'.") from None
    return module


def signal_names(names: Sequence[str]) -> list[str]:
    """Names as python-control accepts them: dots, which it reads as subsystem.signal, become underscores."""
    return [name.replace(".", "_") for name in names]


def state_space(matrices: Sequence[Any], names: Sequence[Sequence[str]], name: str) -> Any:
    """Return the `control.StateSpace` of A, B, C, D, with the names of states, inputs and outputs."""
    states, inputs, outputs = (signal_names(of) for of in names)
    return control().ss(*matrices, states=states, inputs=inputs or None, outputs=outputs, name=signal_names([name])[0])
