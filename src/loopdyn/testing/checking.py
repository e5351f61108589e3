"""`check_formulation`: contract test of a formulation, by comparison with the oracle and with itself.

Mechanisms of the library, rotated into a generic orientation, and random ones are assembled at random states with
random velocities. There the accelerations `a` and multipliers `lam` must

* equal those of the oracle, J a = gamma, M a = h + J^T lam, and v^T (M a - h) = -lam^T phi_t (power);
* not depend on the order of bodies and joints, on which joints were cut, on the units (lengths in mm and masses in g),
  nor on earlier calls of the solver; inputs stay unchanged.

Moving bases, drivers, redundant loops and bodies without inertia about some axis are among the mechanisms. Joints have
either direction in the random ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn import library
from loopdyn.analysis.assembly import assembled
from loopdyn.errors import AssemblyError, LoopdynError, SingularityError
from loopdyn.formulations.base import Formulation, Solution, Solver
from loopdyn.formulations.oracle import Oracle
from loopdyn.formulations.registry import formulation_class
from loopdyn.joints import Joint
from loopdyn.loops.rank import Rank, decide
from loopdyn.model.inertia import Inertia
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.units import Resolver
from loopdyn.system.builder import build
from loopdyn.system.spanning_tree import forest_of_cuts
from loopdyn.system.system import State, System
from loopdyn.tree.functions import (
    Motion,
    Terms,
    body_motion,
    increment,
    measured_coordinates,
    open_tree_body_jacobian,
    terms,
)

Array = NDArray[np.float64]

SPREAD = 0.3  # natural units: distance of random poses from the reference pose
SINGULAR = 1e-3  # states whose smallest kept singular value is below this fraction of the largest are not used
STATES = 20  # states drawn for one mechanism before it is left out
MM, G = 1e3, 1e3  # in one m, in one kg


@dataclass(frozen=True)
class CheckFinding:
    """One comparison: the mechanism, the quantity, the largest relative error, and the exception raised, if any."""

    mechanism: str
    what: str
    error: float
    raised: str = ""


@dataclass(frozen=True)
class CheckReport:
    """Result of :func:`check_formulation`.

    Attributes
    ----------
    formulation : str
        Formulation that was checked, with its options.
    approximate : bool
        Whether it is approximate by nature: errors are then reported and not judged.
    tolerance : float
        Relative error allowed.
    findings : tuple of Finding
    unsupported : dict
        Mechanisms that the formulation refuses, and its reasons.
    skipped : dict
        Mechanisms, or variants of them, that were not compared, and the reasons.
    """

    formulation: str
    approximate: bool
    tolerance: float
    findings: tuple[CheckFinding, ...]
    unsupported: dict[str, str]
    skipped: dict[str, str]

    @property
    def failures(self) -> tuple[CheckFinding, ...]:
        """Comparisons beyond the tolerance; for an approximate formulation only those that raised an error."""
        allowed = np.finfo(float).max if self.approximate else self.tolerance
        return tuple(f for f in self.findings if not f.error <= allowed)

    @property
    def passed(self) -> bool:
        """Whether there are findings, and none of them is a failure."""
        return bool(self.findings) and not self.failures

    def raise_if_failed(self) -> None:
        """Raise a LoopdynError with the report unless it passed."""
        if not self.passed:
            raise LoopdynError(str(self))

    def __str__(self) -> str:
        tested = len({f.mechanism for f in self.findings})
        verdict = "passed" if self.passed else f"FAILED in {len(self.failures)} of {len(self.findings)} comparisons"
        if self.approximate:
            verdict += " (approximate by nature: errors are reported, not judged)"
        lines = [f"{self.formulation}: {verdict}; {tested} mechanisms, relative error allowed {self.tolerance:g}"]
        for what in dict.fromkeys(f.what for f in self.findings):
            group = [f for f in self.findings if f.what == what]
            worst = max(group, key=lambda f: np.inf if np.isnan(f.error) else f.error)
            lines.append(f"  {what:<22} {len(group):>4} compared, largest error {worst.error:.1e} ({worst.mechanism})")
        lines += [
            f"  failed: {f.mechanism}: {f.what}, {f.raised or f'error {f.error:.2e}'}" for f in self.failures[:20]
        ]
        lines += [f"  unsupported: {name}: {reason}" for name, reason in self.unsupported.items()]
        lines += [f"  not compared: {name}: {reason}" for name, reason in self.skipped.items()]
        return "\n".join(lines)


def check_formulation(
    formulation: str | Formulation,
    systems: Mapping[str, Mechanism] | Iterable[Mechanism] | None = None,
    *,
    seed: int = 0,
    tolerance: float = 1e-8,
    random: int = 12,
    loops: int = 4,
) -> CheckReport:
    """Compare a formulation with the oracle, and with itself under changes that must not matter.

    Parameters
    ----------
    formulation : str or Formulation
        By name, or with its options, e.g. ``ld.Absolute(solver="schur")``.
    systems : mechanisms, optional
        Mechanisms to check it on; by default the library in a generic orientation, variants of it with moving bases,
        drivers and thin rods, and random mechanisms.
    seed : int
        Seed of the random mechanisms, states and cuts.
    tolerance : float
        Relative error allowed.
    random : int
        Number of random mechanisms.
    loops : int
        Largest number of loops of a random mechanism.

    Returns
    -------
    CheckReport
        Prints all findings; ``report.raise_if_failed()`` turns failures into an error.

    Examples
    --------
    >>> import loopdyn as ld
    >>> report = ld.formulations.check_formulation("relative", [ld.library.four_bar()])
    >>> report.passed
    True
    """
    method = formulation if isinstance(formulation, Formulation) else formulation_class(formulation)()
    if systems is None:
        named: Iterable[tuple[str, Mechanism]] = _samples(seed, random, loops)
    elif isinstance(systems, Mapping):
        named = systems.items()
    else:
        named = ((f"{k} {m.name}", m) for k, m in enumerate(systems, 1))
    checking = _Checking(method, np.random.default_rng(seed))
    for name, mechanism in named:
        checking.mechanism(name, mechanism)
    found = tuple(checking.findings)
    return CheckReport(repr(method), method.approximate, tolerance, found, checking.unsupported, checking.skipped)


# ------------------------------------------------------------------------------------------------- mechanisms


def _samples(seed: int, count: int, loops: int) -> Iterator[tuple[str, Mechanism]]:
    for name, make in library.ALL.items():
        yield name, library.turned(make())
    for name in ("four_bar", "rssr", "stewart_3rrs"):
        m = library.turned(library.ALL[name]())
        m.move_base(x="0.2*sin(3*t)", z="0.1*t**2", rx="0.3*sin(2*t)", ry="0.4*t")
        yield f"{name} on a moving base", m
    for name, joint in (("five_bar", "A"), ("stewart_3rrs", "J7")):
        m = library.turned(library.ALL[name]())
        m.add_driver("given", joint, "0.2*sin(3*t)")
        yield f"{name} with a driver", m
    yield "four_bar of thin rods", library.turned(_thin())
    for k in range(count):
        yield f"random {k}", random_sample(seed, k, loops)


def _thin() -> Mechanism:
    """Four-bar whose links have no inertia about their own lines."""
    m = library.four_bar()
    r = m.resolver()
    at = {name: _vector(r, joint.at) for name, joint in m.joints.items()}
    thin = Mechanism("thin", gravity=(0, -9.81, 0))
    for body, start, end in (("crank", "A", "B"), ("coupler", "B", "C"), ("rocker", "D", "C")):
        thin.add_body(body, Inertia.rod(mass=1.0, start=at[start], end=at[end]))
    thin.joints = {name: joint.model_copy(update={"at": at[name]}) for name, joint in m.joints.items()}
    return thin


def random_sample(seed: int, k: int, loops: int) -> Mechanism:
    """Random mechanism k of a check: up to `loops` loops, some with doubled joints, floating, with forces."""
    wanted = 1 + k % loops
    for more in range(20):
        with contextlib.suppress(ValueError):  # no room for so many loops on this tree
            return library.random_mechanism(
                1000 * seed + 100_000 * more + k,
                bodies=2 * wanted + 2 + k % 3 + more,
                loops=wanted,
                redundant=k % 3,
                floating=k % 5 == 4,
                forces=k % 2 == 1,
            )
    raise AssertionError(f"no random mechanism with {wanted} loops was found")


def _reordered(m: Mechanism) -> Mechanism:
    """Mechanism with its elements in reverse order."""
    other = m.model_copy(deep=True)
    for section in ("bodies", "joints", "constraints"):
        setattr(other, section, dict(reversed(getattr(m, section).items())))
    return other


def _other_cuts(system: System, rng: np.random.Generator) -> list[str] | None:
    """Another, random set of joints to cut; None if there is no choice."""
    edges = system.topology.edges
    for _ in range(10 if system.topology.cuts else 0):
        order = [int(k) for k in rng.permutation(len(edges))]
        cut = set(order)
        for k in order:  # a joint is put back if that closes no loop
            if not isinstance(forest_of_cuts(system.topology.names, edges, system.n_bases, cut - {k}), list):
                cut.discard(k)
        found = sorted(edges[k].name for k in cut)
        if found != sorted(system.topology.cuts):
            return found
    return None


# ------------------------------------------------------------------------------------------------- comparing


class _Checking:
    """Collects findings about one formulation."""

    def __init__(self, method: Formulation, rng: np.random.Generator):
        self.method, self.rng = method, rng
        self.findings: list[CheckFinding] = []
        self.unsupported: dict[str, str] = {}
        self.skipped: dict[str, str] = {}

    def mechanism(self, name: str, m: Mechanism) -> None:
        """Check one mechanism at one state, and variants of it at the same state."""
        system = m.compile()
        reason = self.method.supports(system)
        if reason is not None:
            self.unsupported[name] = reason
            return
        drawn = _state(system, self.rng)
        if drawn is None:
            self.skipped[name] = "no state away from singular poses was found"
            return
        state, rank = drawn
        try:
            expected = Oracle().prepare(system, rank)(state.t, state.q, state.v)
        except SingularityError as error:
            self.skipped[name] = str(error)
            return
        solver = self.method.prepare(system, rank)
        found = self._attempt(name, "accelerations", solver, state)
        if found is None:
            return
        scale = _scale(system, state, expected)
        self._compare(name, "accelerations", np.abs((found.a - expected.a) / system.speed_units), scale)
        self._equations(name, system, state, terms(system, state), found, scale)
        self._memory(name, system, state, solver, found)
        motion = body_motion(system, state, found.a)
        self._variant(name, "order of description", build(_reordered(m)), motion, state)
        cuts = _other_cuts(system, self.rng)
        if cuts is not None:
            self._variant(name, "choice of cuts", build(m, cuts=cuts), motion, state)
        self._units(name, m, system, state, found)

    def _attempt(self, name: str, what: str, solver: Solver, state: State) -> Solution | None:
        """A solution, or a failure among the findings."""
        q, v = np.array(state.q), np.array(state.v)
        q.flags.writeable = v.flags.writeable = False
        try:
            return solver(state.t, q, v)
        except (LoopdynError, ArithmeticError, ValueError) as error:
            self.findings.append(CheckFinding(name, what, np.inf, f"{type(error).__name__}: {error}"))
            return None

    def _compare(self, name: str, what: str, error: Array, scale: float) -> None:
        largest = float(np.max(error, initial=0.0)) if np.isfinite(error).all() else np.inf
        self.findings.append(CheckFinding(name, what, largest / max(scale, 1e-300)))

    def _equations(self, name: str, system: System, state: State, e: Terms, found: Solution, scale: float) -> None:
        """Check the equations that accelerations and multipliers must satisfy, independently of the oracle."""
        a, lam, rows, columns = found.a, found.lam, system.row_units, system.speed_units
        if system.nc:
            # rows that duplicate tree joints are zero up to rounding: scale not less than the accelerations themselves
            size = (np.abs(e.J) @ np.abs(a) + np.abs(e.gamma)) / rows
            self._compare(name, "J a = gamma", np.abs(e.J @ a - e.gamma) / rows, max(float(size.max()), scale))
        size = columns * (np.abs(e.M) @ np.abs(a) + np.abs(e.h) + np.abs(e.J.T) @ np.abs(lam))
        error = columns * np.abs(e.M @ a - e.h - e.J.T @ lam)
        self._compare(name, "M a = h + J^T lam", error, float(size.max(initial=0.0)))
        power = state.v @ (e.M @ a - e.h) + lam @ e.phi_t
        all_of_it = np.abs(state.v) @ (np.abs(e.M) @ np.abs(a) + np.abs(e.h)) + np.abs(lam) @ np.abs(e.phi_t)
        self._compare(name, "power", np.array([abs(power)]), float(all_of_it))

    def _memory(self, name: str, system: System, state: State, solver: Solver, found: Solution) -> None:
        """Check that the result is the same after a call with another state.

        Multipliers are compared by their loads on the coordinates: with redundant rows others may be kept since.
        """
        J = terms(system, state).J
        a, load, size = found.a.copy(), J.T @ found.lam, np.abs(J.T) @ np.abs(found.lam)
        with contextlib.suppress(LoopdynError):  # the reference pose may be singular, which is not tested here
            solver(state.t + 0.1, np.array(system.q_reference), 2.0 * state.v)
        again = self._attempt(name, "called again", solver, state)
        if again is not None:
            change = np.concatenate([np.abs(again.a - a), np.abs(J.T @ again.lam - load)])
            self._compare(name, "called again", change, float(np.abs(np.concatenate([a, size])).max(initial=0.0)))

    def _variant(self, name: str, what: str, other: System, motion: Motion, state: State) -> None:
        """Check that another description of the mechanism gives the same accelerations of all bodies."""
        reason = self.method.supports(other)
        if reason is not None:
            self.unsupported[f"{name}, {what}"] = reason
            return
        there = _transferred(other, motion, state.t)
        same = body_motion(other, there)
        where = [same.bodies.index(body) for body in motion.bodies]
        away = [
            np.abs(same.position[where] - motion.position).max(),
            np.abs(same.velocity[where] - motion.velocity).max(),
        ]
        if max(away) > 1e-9 * max(other.size, float(np.abs(motion.velocity).max())):
            self.skipped[f"{name}, {what}"] = "the state could not be carried over"
            return
        try:
            found = self.method.prepare(other, decide(other, there))(there.t, there.q, there.v)
        except SingularityError as error:  # with these cuts some body has no inertia in the tree: reported, not hidden
            self.skipped[f"{name}, {what}"] = str(error)
            return
        seen = body_motion(other, there, found.a)
        linear = np.abs(seen.acceleration[where] - motion.acceleration).max() / other.size
        angular = np.abs(seen.angular_acceleration[where] - motion.angular_acceleration).max()
        largest = max(np.abs(motion.acceleration).max() / other.size, np.abs(motion.angular_acceleration).max())
        scale = max(float(largest), np.abs(other.model.gravity).max() / other.size, 1.0)
        self._compare(name, what, np.array([linear, angular]), float(scale))

    def _units(self, name: str, m: Mechanism, system: System, state: State, found: Solution) -> None:
        """Check that units of mm and g give the same motion; forces, constraints and moving bases are left out."""
        if m.forces or m.user_forces or m.constraints or m.user_constraints or m.drivers or m.base:
            return
        other = build(_in_mm_and_g(m), cuts=list(system.topology.cuts))
        if set(other.coordinates) != set(system.coordinates) or self.method.supports(other) is not None:
            return  # another body is the root
        q_units, v_units = _in_mm(system)
        q = [system.coordinates.index(label) for label in other.coordinates]
        v = [system.speeds.index(label) for label in other.speeds]
        there = State(state.t, (state.q * q_units)[q], (state.v * v_units)[v])
        solution = self._attempt(name, "units", self.method.prepare(other, decide(other, there)), there)
        if solution is not None:
            error = np.abs((solution.a / v_units[v] - found.a[v]) / system.speed_units[v])
            self._compare(name, "units", error, _scale(system, state, found))


def _scale(system: System, state: State, solution: Solution) -> float:
    """Size of the accelerations in natural units; not less than that of weight and of velocity terms."""
    gravity = np.abs(system.model.gravity).max() / system.size
    speed = np.abs(state.v / system.speed_units).max(initial=0.0)
    return float(max(np.abs(solution.a / system.speed_units).max(initial=0.0), gravity, speed**2))


def _state(system: System, rng: np.random.Generator) -> tuple[State, Rank] | None:
    """Random closed state whose rank is clear."""
    for _ in range(STATES):
        q = increment(system, system.q_reference, SPREAD * system.speed_units * rng.uniform(-1, 1, system.nv))
        v = system.speed_units * rng.normal(size=system.nv)
        try:
            state = assembled(system, q=q, v=v, t=float(rng.uniform(0.1, 1.0)), tries=5)
        except AssemblyError:
            continue
        rank = decide(system, state)
        s = rank.singular_values
        if rank.clear and (rank.count == 0 or s[rank.count - 1] > SINGULAR * s[0]):
            return state, rank
    return None


def _transferred(other: System, motion: Motion, t: float) -> State:
    """State of another system in which its bodies have the poses and velocities of `motion`."""
    where = {name: k for k, name in enumerate(motion.bodies)}
    at = State(t, measured_coordinates(other, motion), np.zeros(other.nv))
    rest = body_motion(other, at)
    rows, right = [np.zeros((0, other.nv))], [np.zeros(0)]
    for k, name in enumerate(other.bodies[other.n_bases :], other.n_bases):
        rows.append(open_tree_body_jacobian(other, name, at))
        right.append(motion.angular_velocity[where[name]] - rest.angular_velocity[k])
        right.append(motion.velocity[where[name]] - rest.velocity[k])
    v = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=None)[0]
    return State(t, at.q, v)


# ------------------------------------------------------------------------------------------------------ units


def _in_mm_and_g(m: Mechanism) -> Mechanism:
    """Mechanism with its numbers in mm and g, used as if they were SI: other numbers for the same motion."""
    r = m.resolver()
    other = Mechanism(m.name, gravity=_vector(r, m.gravity, "acceleration", MM))
    for name, body in m.bodies.items():
        mass, com, inertia = body.resolve(r, name, ())
        changes: dict[str, Any] = {"mass": G * mass, "com": MM * com, "inertia": G * MM**2 * inertia, "axes": body.axes}
        if body.pose is not None:
            changes["pose"] = body.pose.model_copy(update={"position": _vector(r, body.pose.position, factor=MM)})
        other.bodies[name] = type(body)(**changes)
    for name, joint in m.joints.items():
        update: dict[str, Any] = {} if joint.at is None else {"at": _vector(r, joint.at, factor=MM)}
        for key in ("parent_frame", "child_frame"):
            frame: Any = getattr(joint, key)
            if frame is not None:
                update[key] = frame.model_copy(update={"position": _vector(r, frame.position, factor=MM)})
        A, par = joint.axes(r, name, ())
        update |= {key: A.T @ direction for key, direction in joint.axes_in_frame(par).items()}
        update |= {key: MM * value for key, value in zip(joint.constants, par, strict=False)}
        if joint.armature is not None:
            update["armature"] = _rotors_in_mm_and_g(r, joint)
        other.joints[name] = joint.model_copy(update=update)
    return other


def _rotors_in_mm_and_g(r: Resolver, joint: Joint) -> float | dict[str, float]:
    """Armature of a joint, kg m^2 of an angle or kg of a slide, in g mm^2 or g."""
    if isinstance(joint.armature, dict):
        turns = {s: joint.dimensions[joint.coordinates.index(s)] == "angle" for s in joint.armature}
        return {s: (G * MM**2 if turns[s] else G) * r.scalar(x, "inertia" if turns[s] else "mass", "", ())
                for s, x in joint.armature.items()}  # fmt: skip
    turn = joint.dimensions[0] != "length"
    return (G * MM**2 if turn else G) * r.scalar(joint.armature or 0.0, "inertia" if turn else "mass", "", ())


def _vector(r: Resolver, value: Any, dimension: str = "length", factor: float = 1.0) -> tuple[float, ...]:
    return tuple((factor * r.vector(value, dimension, "", ())).tolist())


def _in_mm(system: System) -> tuple[Array, Array]:
    """Factors of coordinates and speeds when lengths are in mm."""
    q, v = np.ones(system.nq), np.ones(system.nv)
    for j in system.joints.values():
        if j.in_tree:
            for k, dimension in enumerate(j.spec.dimensions):
                if dimension == "length":
                    q[j.q0 + k] = MM
            for k, dimension in enumerate(j.spec.speed_dimensions):
                if dimension == "length":
                    v[j.v0 + k] = MM
    return q, v
