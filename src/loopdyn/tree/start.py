"""The state that is meant where none is given."""

from __future__ import annotations

from loopdyn.system.system import State, System


def given(system: System, state: State | None) -> State:
    """The state, or the start of the model, assembled.

    Examples
    --------
    >>> import loopdyn as ld
    >>> given(ld.library.pendulum().compile(), None).t
    0.0
    """
    if state is not None:
        return state
    from loopdyn.analysis.assembly import assemble

    return assemble(system)
