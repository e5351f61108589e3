"""Outcome of steps, and their counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Outcome:
    """Outcome of a call that made steps.

    Attributes
    ----------
    end : str
        "running": more steps can follow; "reached": the target time is reached; "failed"; "asks": the solver must be
        prepared again, or another method must make the step.
    stepped : bool
        At least one step was taken.
    landed : bool
        The last step was accepted, but its outputs are still to be written.
    may_hold_event : bool
        An event function may pass zero in the last step.
    status : int
        Status of the last attempt, if it failed.
    """

    end: str
    stepped: bool
    landed: bool
    may_hold_event: bool
    status: int

    @property
    def succeeded(self) -> bool:
        """Whether no step failed."""
        return self.end in ("running", "reached")


class Counts(NamedTuple):
    """Numbers of accepted steps, rejected steps, and evaluations of the accelerations."""

    steps: int
    rejected: int
    evaluations: int
