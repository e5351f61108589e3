"""Coordinates and speeds of a state from what a user gives, checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import ModelError, Problem, UnknownLabelError
from loopdyn.quantities.wording import nearest
from loopdyn.system.labels import JointLabel

if TYPE_CHECKING:
    from loopdyn.system.system import JointData

Array = NDArray[np.float64]

VAGUE = 1e15  # rad or m: neighbouring numbers are 0.1 apart, so that no loop closes


def label_values(given: Any, labels: Sequence[str], known: Mapping[str, JointLabel], start: Array, kind: str) -> Array:
    """Array of coordinates or speeds from a mapping of labels or an array; what is not given is as in `start`."""
    out = np.array(start, float)
    if isinstance(given, Mapping):
        wrong = [label for label in given if label not in known or known[label].place < 0]
        if wrong:
            raise UnknownLabelError(_unknown_label(known, kind, label, labels) for label in wrong)
        for label, value in given.items():
            out[known[label].place] = value
    elif given is not None:
        out = np.array(given, float)
        if out.shape != (len(labels),):
            message = f"{len(labels)} {kind}s are needed, {out.size} were given"
            raise ModelError([Problem("state", message, f"Order: {', '.join(labels[:8])}...")])
    bad = [label for label, value in zip(labels, out, strict=True) if not math.isfinite(value)]
    if bad:
        raise ModelError(Problem("state", f"{kind} '{label}' is not finite", "Give a number.") for label in bad)
    vague = [label for label, value in zip(labels, out, strict=True) if abs(value) >= VAGUE and kind == "coordinate"]
    if vague:
        message = "is so large that no digits are left after the decimal point"
        raise ModelError(Problem("state", f"{kind} '{x}' {message}", "Give an angle within some turns.") for x in vague)
    return out


def _unknown_label(known: Mapping[str, JointLabel], kind: str, label: str, labels: Sequence[str]) -> Problem:
    if label in known:
        message = f"joint '{known[label].joint.name}' is cut, so '{label}' is not among the {kind}s of the tree"
        return Problem("state", message, "Compile with other cuts=[...], or assemble the mechanism.")
    return Problem("state", f"there is no {kind} '{label}'", nearest(label, labels))


def normalise(q: Array, joints: Iterable[JointData]) -> None:
    """Bring quaternions to unit length; one of length zero is an error."""
    for j in joints:
        if j.in_tree and "w" in j.spec.coordinates:
            k = j.q0 + j.spec.coordinates.index("w")
            length = np.linalg.norm(q[k : k + 4])
            if length == 0.0:
                raise ModelError([Problem(f"joint '{j.name}'", "its quaternion is zero", "Use (1, 0, 0, 0).")])
            q[k : k + 4] /= length
