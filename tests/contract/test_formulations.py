"""Every registered formulation keeps the contract, and `check_formulation` notices one that does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.analysis.comparing import every_formulation
from loopdyn.formulations.base import Formulation, FunctionSolver
from loopdyn.formulations.registry import CLASSES
from loopdyn.testing.checking import random_sample

METHODS = every_formulation()
EVERY = pytest.mark.parametrize("name", METHODS)
SMALL = {
    "four_bar": ld.library.turned(ld.library.four_bar()),
    "rssr": ld.library.turned(ld.library.rssr()),
    "door": ld.library.random_mechanism(3, bodies=2, loops=0, redundant=1),
}


def test_every_registered_formulation_is_among_those_checked():
    assert {type(m).name for m in METHODS.values()} == set(CLASSES)


@EVERY
def test_formulation_keeps_the_contract_on_the_library_and_random_mechanisms(name):
    report = ld.formulations.check_formulation(METHODS[name])
    report.raise_if_failed()
    assert not report.unsupported
    assert not report.skipped
    compared = {f.what for f in report.findings}
    assert compared == {
        "accelerations",
        "J a = gamma",
        "M a = h + J^T lam",
        "power",
        "called again",
        "order of description",
        "choice of cuts",
        "units",
    }


@pytest.mark.jit_off
@pytest.mark.parametrize("name", ["oracle", "relative", "graph", "kkt", "partition", "rcr"])
def test_formulation_keeps_the_contract_on_small_mechanisms(name):
    ld.formulations.check_formulation(METHODS[name], SMALL).raise_if_failed()


@cache
def many() -> dict[str, ld.Mechanism]:
    return {f"random {k}": random_sample(7, k, 12) for k in range(300)}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@EVERY
def test_formulation_keeps_the_contract_on_300_random_mechanisms_with_up_to_12_loops(name):
    """1e-8 where the rank is clear, redundant ones included; a few have no state away from singular poses."""
    report = ld.formulations.check_formulation(METHODS[name], many(), seed=7)
    print(report)  # the largest errors; shown with -s
    report.raise_if_failed()
    assert len({f.mechanism for f in report.findings}) >= 290


@pytest.mark.parametrize("solver", ["penalty"])
def test_penalty_comes_nearer_to_the_oracle_with_a_larger_penalty(solver):
    """Judged by convergence: without the augmented Lagrangian its error falls with the penalty."""
    errors = []
    for penalty in (1e4, 1e6):
        report = ld.formulations.check_formulation(ld.Absolute(solver=solver, penalty=penalty, augmented=False), SMALL)
        assert report.approximate
        errors.append(max(f.error for f in report.findings if f.what == "accelerations"))
    assert errors[1] < 0.1 * errors[0]


# ------------------------------------------------------------------------------ motion that has no inertia


def thin_rssr() -> ld.Mechanism:
    """RSSR whose coupler is a rod without thickness: its idle spin has no inertia, so no acceleration is right."""
    m = ld.library.rssr()
    r = m.resolver()
    ends = [tuple(r.vector(m.joints[j].at, "length", "", ())) for j in "BC"]
    thin = ld.Mechanism("thin", gravity=(0, 0, -9.81))
    for name, body in m.bodies.items():
        mass, com, inertia = body.resolve(r, name, ())
        rod = ld.Inertia.rod(mass=1.0, start=ends[0], end=ends[1])
        thin.add_body(name, rod if name == "coupler" else ld.Inertia(mass, com, inertia))
    for name, joint in m.joints.items():
        thin.joints[name] = joint.model_copy(update={"at": tuple(r.vector(joint.at, "length", "", ()))})
    return thin


@EVERY
@pytest.mark.parametrize("turned", [False, True])
def test_undetermined_acceleration_is_refused_by_the_name_of_the_body(name, turned):
    m = ld.library.turned(thin_rssr()) if turned else thin_rssr()
    for cuts in (None, ["A"], ["B"], ["C"], ["D"], "all"):
        system = m.compile(cuts=cuts)
        for angle in (0.1, 0.3):
            state = ld.assemble(system, q={"A": angle}, v={"A": 1.0})
            with pytest.raises(ld.errors.SingularityError, match="'coupler' can move where it has no inertia"):
                ld.accelerations(system, state, METHODS[name])


@EVERY
@pytest.mark.parametrize("angle", [0.0, 1e-9])
def test_singular_pose_is_refused_though_it_was_given_as_the_start(name, angle):
    """All links of the n_four_bar in line: its rows lose rank there, and accelerations are not unique."""
    system = ld.library.turned(ld.library.n_four_bar(2)).compile()
    flat = {c: (-np.pi / 2 + angle) * (1.0 if c.startswith("A") else -1.0) for c in system.coordinates}
    with pytest.raises(ld.errors.SingularityError, match="singular pose"):
        ld.accelerations(system, system.state(q=flat), METHODS[name])


def test_light_body_is_not_a_body_without_inertia():
    """A coupler a million times lighter than the crank, and thin: its spin inertia is 1e-12 of the crank's."""
    m = ld.library.rssr()
    m.bodies["coupler"] = m.bodies["coupler"].model_copy(update={"mass": 1e-6})
    system = ld.library.turned(m).compile()
    state = ld.assemble(system, v={"A": 2.0})
    found = [ld.accelerations(system, state, f) for f in ("oracle", "relative")]
    k = system.speeds.index("A")
    assert found[0][k] == pytest.approx(found[1][k], rel=1e-8)


# ---------------------------------------------------------------------------------------- what the check catches


@dataclass(frozen=True)
class Wrong(Formulation):
    """The oracle with one fault."""

    name: ClassVar[str] = "wrong"

    fault: str = ""

    def supports(self, system):
        return "it is too large" if self.fault == "refuses" and system.nv > 3 else None

    def prepare(self, system, rank):
        inner = ld.formulations.Oracle().prepare(system, rank)
        calls = []

        def solve(t, q, v):
            calls.append(t)
            s = inner(t, q, v)
            if self.fault == "a":
                return replace(s, a=s.a + 1e-6 * system.speed_units * np.abs(s.a).max())
            if self.fault == "lam" and len(s.lam):
                return replace(s, lam=1.001 * s.lam)
            if self.fault == "memory" and len(calls) > 1:
                return replace(s, lam=s.lam * (1 + 1e-6), a=s.a * (1 + 1e-6))
            if self.fault == "order":
                bodies = list(system.mechanism.bodies)
                return replace(s, a=s.a * (1 + 1e-6 * (bodies[0] == min(bodies))))
            if self.fault == "cuts":
                return replace(s, a=s.a * (1 + 1e-6 * len(system.topology.cuts[0]) * ("C" in system.topology.cuts)))
            if self.fault == "units":
                return replace(s, a=s.a + 1e-6)
            if self.fault == "inputs":
                q[0] = 1.0
            if self.fault == "raises":
                raise ld.errors.SingularityError("no idea")
            if self.fault == "nan":
                return replace(s, a=s.a * np.nan)
            return s

        return FunctionSolver(solve)


FAULTS = {
    "a": "accelerations",
    "lam": "M a = h + J^T lam",
    "memory": "called again",
    "order": "order of description",
    "cuts": "choice of cuts",
    "units": "units",
    "inputs": "accelerations",
    "raises": "accelerations",
    "nan": "accelerations",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_check_catches_a_formulation_with_a_fault(fault):
    report = ld.formulations.check_formulation(Wrong(fault), SMALL)
    assert not report.passed
    assert FAULTS[fault] in {f.what for f in report.failures}
    assert "FAILED" in str(report)
    with pytest.raises(ld.LoopdynError, match="FAILED"):
        report.raise_if_failed()


def test_check_passes_the_same_formulation_without_a_fault():
    report = ld.formulations.check_formulation(Wrong(), SMALL)
    assert report.passed
    assert "passed" in str(report)


def test_check_lists_what_is_refused_with_the_reason():
    report = ld.formulations.check_formulation(Wrong("refuses"), SMALL)
    assert report.unsupported["rssr"] == "it is too large"
    assert "unsupported: rssr: it is too large" in str(report)
    nothing = ld.formulations.check_formulation(Wrong("refuses"), {"rssr": SMALL["rssr"]})
    assert not nothing.passed  # nothing was compared
