"""What every constraint type must offer (`loopdyn/constraints/base.py`): all types, all duties.

That J and gamma are derivatives of phi along motions, tests/property/test_constraints.py shows for the same examples
(by differences); here J, by complex steps, and what each type says about its rows.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from tests.independent import random_state
from tests.property.test_constraints import CONSTRAINTS, arm

import loopdyn as ld
from loopdyn.constraints import dispatch
from loopdyn.constraints.base import FIRST_CONSTRAINT, Constraint
from loopdyn.engine import records as rec
from loopdyn.engine.layout import opened
from loopdyn.tree import jacobian, kinematics

pytestmark = pytest.mark.jit_off

STEP = 1e-30  # of complex steps
each_constraint = pytest.mark.parametrize("name", CONSTRAINTS)


def system_with(name: str) -> ld.System:
    m = arm()
    m.add_constraint("k", CONSTRAINTS[name])
    return m.compile()


def rows_at(system: ld.System, t: complex, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
    """phi, gamma, J and d phi/dt in complex arithmetic."""
    work = system.work(np.complex128)
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:] = t, q, v
    J, rate = np.empty((system.nc, system.nv), complex), np.empty(system.nc, complex)
    kinematics.place(system.ints, system.floats, work, False)
    jacobian.constraint_terms(system.ints, system.floats, work, J, rate)
    return w.phi, w.gamma, J, rate


def moved(system: ld.System, q: np.ndarray, xi: np.ndarray) -> np.ndarray:
    out = np.empty(system.nq, complex)
    kinematics.plus(system.ints, system.floats, q.astype(complex), np.asarray(xi, complex), out)
    return out


def test_every_type_is_tried():
    assert {type(c) for c in CONSTRAINTS.values()} == set(dispatch.TYPES)


@pytest.mark.parametrize("kind", dispatch.TYPES, ids=lambda t: t.__name__)
def test_a_type_is_a_file_of_its_name_that_has_its_code(kind):
    name = kind.model_fields["type"].default
    assert kind.__module__ == f"loopdyn.constraints.{name}"
    assert kind.label == name
    assert [t for t in dispatch.TYPES if t.code == kind.code] == [kind]
    assert getattr(sys.modules[kind.__module__], name.upper()) == kind.code
    assert "code" in vars(kind)
    if kind.drawn_as is not None:
        assert {"body1", "body2", "point1", "point2"} <= set(kind.model_fields)


@each_constraint
def test_its_code_is_where_the_kernels_look_for_it_and_it_names_what_it_holds(name):
    system, spec = system_with(name), CONSTRAINTS[name]
    pairs, linear = len(system.model.cut), len(system.model.linear)
    assert (pairs, linear) in ((1, 0), (0, 1))
    if pairs:
        assert spec.code >= FIRST_CONSTRAINT
        assert system.model.cut[0, rec.C_KIND] == spec.code
        held = [system.bodies[k] for k in system.model.cut[0, [rec.C_PARENT, rec.C_CHILD]]]
        assert (list(spec.bodies()), spec.joints()) == (held, ())
    else:
        assert system.model.linear[0, rec.L_KIND] == spec.code
        assert spec.bodies() == ()
        assert set(spec.joints()) == {"A", "B", "C"}


@each_constraint
def test_J_is_the_derivative_of_phi_or_of_its_rate(name):
    """By complex steps of phi along each speed, and of its rate by each speed."""
    system = system_with(name)
    state = random_state(system, np.random.default_rng(7), 0.2, t=0.37)
    J = rows_at(system, state.t, state.q, state.v)[2].real
    for k, e in enumerate(np.eye(system.nv)):
        by_phi = rows_at(system, state.t, moved(system, state.q, 1j * STEP * e), state.v)[0].imag / STEP
        by_rate = rows_at(system, state.t, state.q, state.v + 1j * STEP * e)[3].imag / STEP
        np.testing.assert_allclose(by_rate, J[:, k], atol=1e-12)
        np.testing.assert_allclose(by_phi[system.holonomic], J[system.holonomic, k], atol=1e-10)  # a curve's search


@each_constraint
def test_rows_that_constrain_velocities_only_have_no_phi(name):
    system = system_with(name)
    for seed in range(3):
        state = random_state(system, np.random.default_rng(seed), 0.2, t=0.37)
        phi = rows_at(system, state.t, state.q, state.v)[0].real
        assert np.all((phi == 0.0) == ~system.holonomic)


@each_constraint
def test_rows_are_affine_in_the_speeds_if_it_says_so(name):
    """Second differences of the rate by the speeds vanish but for rounding, or not."""
    system = system_with(name)
    state = random_state(system, np.random.default_rng(3), 0.2, t=0.37)
    low, middle, high = (rows_at(system, state.t, state.q, s * state.v)[3].real for s in (0.5, 1.0, 1.5))
    curved = np.abs(low - 2 * middle + high).max() > 1e-9
    assert curved == (not CONSTRAINTS[name].affine)
    assert system.affine == CONSTRAINTS[name].affine


@each_constraint
def test_rows_that_are_torques_are_angles_and_others_lengths(name):
    """A multiplier of an angle turns: its row has a torque that does not come from a force."""
    system, spec = system_with(name), CONSTRAINTS[name]
    if not len(system.model.cut):
        assert spec.angles == spec.nonholonomic == ()  # said by the record of a linear constraint
        return
    work = system.work()
    w = system.open_work(work)
    w.q[:] = system.q_reference
    kinematics.place(system.ints, system.floats, work, False)
    jacobian.constraint_terms(system.ints, system.floats, work, np.empty((system.nc, system.nv)), np.empty(system.nc))
    turns = [not np.any(row[3:]) for row in w.rows]
    assert system.row_dimensions == tuple("angle" if x else "length" for x in turns)


def test_a_type_that_is_not_listed_is_refused_when_it_is_compiled():
    class OnSphere(Constraint):
        label: ClassVar[str] = "on_sphere"
        code: ClassVar[int] = 99
        type: Literal["on_sphere"] = "on_sphere"

        def resolve(self, *_: Any) -> Any:
            raise AssertionError("not asked")

    m = arm()
    m.add_constraint("k", OnSphere())
    with pytest.raises(
        ld.errors.ModelError, match=r"'on_sphere' is not known to the kernels.*constraints/dispatch\.py"
    ):
        m.compile()


@pytest.mark.parametrize("name", ["distance", "coupler"])
def test_a_code_without_a_branch_gives_nan(name):
    system = system_with(name)
    ints = system.ints.copy()
    model = opened(rec.open_model, ints, system.floats)
    table, column = (model.cut, rec.C_KIND) if len(model.cut) else (model.linear, rec.L_KIND)
    table[0, column] = 99
    work = system.work()
    w = system.open_work(work)
    w.q[:] = system.q_reference
    jacobian.constraint_terms(ints, system.floats, work, np.empty((system.nc, system.nv)), np.empty(system.nc))
    assert np.isnan(w.phi).all()
