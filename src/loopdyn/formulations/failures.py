"""Errors of solvers in words: one function per code of :mod:`loopdyn.engine.status`.

A solver's ``explain`` chooses the function by the code and passes time, names and values.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopdyn.engine.status import NOT_CLOSED, SINGULAR_END, UNDEFINED, UNSETTLED
from loopdyn.errors import ConvergenceError, LoopdynError, SingularityError
from loopdyn.system.system import System


def unknown(status: int) -> RuntimeError:
    """Internal error: a status that this solver never returns."""
    return RuntimeError(f"status {status} of a kernel has no meaning here; see loopdyn/engine/status.py")


def not_finite(t: float) -> SingularityError:
    """NOT_A_NUMBER, UNDEFINED."""
    return SingularityError(
        f"accelerations are not finite numbers at t = {t:g} s. Check springs and actuators whose points "
        "coincide there, formulas that divide by zero, and the state."
    )


def rows_dependent(t: float) -> SingularityError:
    """AGAIN, after rows were chosen again."""
    return SingularityError(
        f"no choice of rows stays independent around t = {t:g} s: the pose is singular or nearly so. "
        "See ld.mobility(system, state), or use smaller steps."
    )


def singular_ahead(t: float) -> SingularityError:
    """PASSAGE, where no momentum steps can take over."""
    return SingularityError(
        f"the step before t = {t:g} s leads to a singular pose. See ld.mobility(system, state), or use smaller steps."
    )


def body_without_inertia(body: str) -> SingularityError:
    """Row of a body; for formulations that ignore what holds the body besides the tree."""
    return SingularityError(
        f"body '{body}' can move where it has no inertia in the tree, so its acceleration is not determined. "
        "Give it mass or inertia."
    )


def no_inertia(t: float, speeds: Sequence[str]) -> SingularityError:
    """NO_INERTIA of the independent speeds."""
    return SingularityError(
        f"the mass matrix of the independent speeds {', '.join(speeds)} is not positive definite at "
        f"t = {t:g} s. Give the bodies that move there mass or inertia."
    )


def singular_set(system: System, t: float, speeds: Sequence[str], limited: bool) -> SingularityError:
    """SINGULAR_SET; `limited`: the user named the speeds that may be independent."""
    names = ", ".join(f"'{label}'" for label in speeds) or "the speeds that are allowed"
    other = "The pose is singular, or the steps are too long: start at a pose nearby"
    if not (system.mechanism.user_forces or system.mechanism.user_constraints):
        other += ", use formulation='auto'"
    hint = "Leave `independent` and `candidates` out" if limited else other
    return SingularityError(
        f"{names} cannot be independent at t = {t:g} s: the other speeds do not follow from them there. {hint}, or "
        "see ld.analyses.coordinates(system, state)."
    )


def speeds_jump(t: float) -> LoopdynError:
    """SINGULAR_SET, if the set is regular and a prescribed motion may be the reason."""
    return LoopdynError(
        f"the speeds of the other coordinates jump at t = {t:.9g} s, where the pose is regular: a given "
        "motion may change its speed at once there, or the steps may be too long. Make the motion smooth "
        "(ld.profiles), use smaller steps, or formulation='auto'."
    )


def not_closed(t: float, speeds: Sequence[str]) -> SingularityError:
    """NOT_CLOSED, of all other coordinates."""
    return SingularityError(
        f"positions of the other coordinates cannot be solved from those of {', '.join(speeds)} near "
        f"t = {t:g} s: the pose is singular or nearly so, or the steps are too long. Use smaller steps, "
        "form='k+n', or see ld.analyses.coordinates(system, state)."
    )


def block_not_closed(t: float, iterated: str, values: str) -> SingularityError:
    """NOT_CLOSED, of the coordinates that `closure` iterates."""
    return SingularityError(
        f"the coordinates that are iterated ({iterated}) cannot be found at {values} near t = {t:g} s: the pose is "
        "singular or nearly so, or the steps are too long. Use smaller steps, or formulation='partition'."
    )


def cannot_close(t: float, joints: Sequence[str], coordinates: Sequence[str], values: str) -> SingularityError:
    """CANNOT_CLOSE."""
    return SingularityError(
        f"the joints {', '.join(joints)} cannot be closed at {values} (t = {t:.9g} s): that is the limit of "
        f"{', '.join(coordinates)}, where the group is stretched or folded. Let other coordinates take over: leave "
        "`independent` out, or see ld.analyses.coordinates(system, state)."
    )


def rows_left_open(t: float, system: System) -> LoopdynError:
    """NOT_THERE."""
    return LoopdynError(
        f"the groups of '{system.name}' close, and some constraint row is open at t = {t:g} s: axes that "
        "were parallel are not any more. Use formulation='partition'."
    )


def step_failed(status: int, t: float, h: float) -> ConvergenceError:
    """Error of a momentum step of the time h."""
    what = f"a step of {h:.2g} s from t = {t:g} s"
    words = {
        UNDEFINED: f"{what} meets numbers that are not finite. Check forces, curves and the state.",
        UNSETTLED: f"{what} is too long for the dampers and motors of the model. Use a smaller step.",
        SINGULAR_END: f"{what} ends in a singular pose. Use another step.",
        NOT_CLOSED: f"no impulses close the joints at the end of {what}. Use a smaller step.",
    }
    if status not in words:
        raise unknown(status)
    return ConvergenceError(words[status])
