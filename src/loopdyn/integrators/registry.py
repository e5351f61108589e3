"""Integrators by name."""

from __future__ import annotations

from loopdyn.errors import LoopdynError
from loopdyn.formulations.base import Formulation
from loopdyn.integrators.adams import ABM
from loopdyn.integrators.auto import AutoIntegrator
from loopdyn.integrators.base import Fixed, Integrator
from loopdyn.integrators.extrapolation import Extrapolation, Steps
from loopdyn.integrators.generalized_alpha import GeneralizedAlpha
from loopdyn.integrators.moreau import Moreau
from loopdyn.integrators.runge_kutta import DOP853, DP5, RK4
from loopdyn.integrators.stiff import Stiff
from loopdyn.quantities.wording import nearest

# All integrators, by their names.
METHODS = (AutoIntegrator, DOP853, DP5, RK4, ABM, GeneralizedAlpha, Stiff, Steps, Extrapolation, Moreau)
CLASSES: dict[str, type[Integrator]] = {kind.name: kind for kind in METHODS}


def chosen(integrator: str | Integrator) -> Integrator:
    """Integrator by name with its default options, or the one given.

    Examples
    --------
    >>> chosen("auto")
    AutoIntegrator(longest=None)
    """
    return integrator if isinstance(integrator, Integrator) else named(integrator, None)


def for_formulation(integrator: str | Integrator, formulation: Formulation) -> Integrator:
    """Integrator for a formulation; raises if the one given cannot be used with it.

    Examples
    --------
    >>> from loopdyn.formulations.momentum.formulation import Momentum
    >>> for_formulation("auto", Momentum())
    Extrapolation(longest=None)
    """
    if not formulation.steps:
        found = chosen(integrator)
        if found.drives_steppers:
            raise LoopdynError(
                f"{found.name} drives formulations that make steps themselves, such as momentum. Use auto."
            )
        return found
    found = Extrapolation() if integrator == "auto" and not formulation.one_size else chosen(integrator)
    if formulation.one_size and isinstance(found, Moreau):
        raise LoopdynError(f"steps with contacts are of order one. Use Momentum() without options, not {formulation}.")
    if formulation.one_size and not isinstance(found, Steps):
        raise LoopdynError(f"steps of {formulation} are of one size. Give it: integrator=Steps(step=1e-3).")
    if not found.drives_steppers:
        raise LoopdynError(f"{formulation.name} makes its steps itself. Use Steps(step=...), or auto.")
    return found


def named(name: str, step: float | None) -> Integrator:
    """Integrator by name, with a step if it needs one.

    Examples
    --------
    >>> named("rk4", 1e-3)
    RK4(step=0.001)
    """
    kind = CLASSES.get(name)
    if kind is None:
        raise LoopdynError(f"there is no integrator '{name}'. {nearest(str(name), CLASSES)}")
    if issubclass(kind, Fixed):
        if step is None:
            raise LoopdynError(f"{name} needs the size of a step. Give it: {kind.__name__}(step=1e-3), or --step.")
        return kind(step=step)
    if step is not None:
        raise LoopdynError(
            f"{name} chooses its steps itself. Leave the step out, or use rk4 or abm; for momentum: steps."
        )
    return kind()
