"""`Measure`: a named quantity of a mechanism, a formula of points, joint coordinates, speeds and loads.

The terms of its formula are those of :mod:`loopdyn.quantities.expressions.terms`; its unit follows from them. A measure
is known at a state (:func:`loopdyn.analyses.measures`), along runs and drives (``run["lift"]``) and in events.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from loopdyn.quantities.units import Spec


class Measure(Spec):
    """A named quantity: a formula in the units of the model.

    Parameters
    ----------
    formula : str
        Arithmetic of ``distance(P, Q)``, ``x(P)``, ``angle(P, Q)``, ``speed(P)`` and so on of named points, of joint
        coordinates ``A``, ``A.speed``, ``A.acceleration``, of reactions ``C.fx``, of forces ``motor.load`` and
        ``motor.power``, of other measures, parameters, numbers and the time ``t``.

    Examples
    --------
    >>> Measure("distance(P, Q) - 0.1").formula
    'distance(P, Q) - 0.1'
    """

    label: ClassVar[str] = "measure"
    short: ClassVar[str] = "formula"  # alone, it stands for the whole in a file

    formula: str


def _shorthand(value: Any) -> Any:
    return {"formula": value} if isinstance(value, str) else value


MeasureField = Annotated[Measure, BeforeValidator(_shorthand, json_schema_input_type=Measure | str)]
