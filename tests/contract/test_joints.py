"""Every joint type fulfils every duty, and the duties agree with each other.

The kernels are called as plain Python, one by one (:func:`plain`): the same sources, without compiling each for itself.
Poses are judged by :func:`tests.independent.placement`, written straight from docs/notation.md; everything else by
derivatives of poses and by duality. Five-point differences with a step of 1e-3 of smooth functions of order one are
exact to about 1e-11; sums of some ten products of order one to 1e-13.
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, get_args

import numba
import numpy as np
import pytest
from tests.independent import TYPES, first_derivative, placement, random_joint, random_rotation, second_derivative

import loopdyn as ld
from loopdyn.joints.base import COMPONENTS, Joint, Turning
from loopdyn.joints.dispatch import JOINT_TYPES, is_known, twists, wrenches

pytestmark = pytest.mark.jit_off

ROUNDING = dict(atol=1e-13, rtol=0)
DIFFERENCE = dict(atol=1e-9, rtol=0)
H = 1e-3
I3, ZERO = np.eye(3), np.zeros(3)
DUTIES = ("rotation", "motion", "pose", "read", "rows")  # functions of each type's own file
FREEDOM_DUTIES = ("coordinate", "wrench")  # ... of those that can move

every_type = pytest.mark.parametrize("joint", JOINT_TYPES, ids=lambda t: t.__name__)


def _import_plain() -> Any:
    """`joints.dispatch` and what it calls, imported once more with the JIT off."""
    parts = ("loopdyn.joints", "loopdyn.spatial")
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(parts)}
    before, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, 1
    try:
        return importlib.import_module("loopdyn.joints.dispatch")
    finally:
        numba.config.DISABLE_JIT = before
        for name in [name for name in sys.modules if name.startswith(parts)]:
            del sys.modules[name]
        sys.modules.update(kept)
        for name, module in kept.items():  # the import has bound the new ones in their packages
            package, _, own = name.rpartition(".")
            setattr(sys.modules[package], own, module)


plain = _import_plain()


class Sample(NamedTuple):
    """A joint in generic orientation, at generic coordinates, between frames in generic orientation."""

    spec: Joint
    A: np.ndarray  # axes of F as rows, in the axes of the placement
    par: tuple[float, float]
    q: np.ndarray
    v: np.ndarray
    F: np.ndarray  # rotation matrix of F in the world
    rng: np.random.Generator

    def plus(self, xi: np.ndarray) -> np.ndarray:
        out = np.empty(len(self.q))
        plain.joint_plus(self.spec.kind, len(xi), self.q, 0, xi, 0, out)
        return out

    def rate(self, xi: np.ndarray, v: np.ndarray) -> np.ndarray:
        out = np.empty(len(v))
        plain.joint_rate(self.spec.kind, len(v), xi, v, 0, out)
        return out

    def pose(self, q: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Position and rotation of M, in F axes."""
        d, E = plain.joint_pose(self.spec.kind, self.par, self.q if q is None else q, 0)
        return np.array(d, float), np.array(E, float).reshape(3, 3)

    @property
    def M(self) -> np.ndarray:
        return self.F @ self.pose()[1]

    def motion(self, q: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
        """d, w, dd, cj, cl in world axes, and the motion subspace (freedoms, 6)."""
        q = self.q if q is None else q
        M, S = self.F @ self.pose(q)[1], np.full((len(self.v), 6), np.nan)
        F, M, axes = (tuple(R.ravel()) for R in (self.F, M, I3))
        found = plain.joint_motion(self.spec.kind, F, M, axes, self.par, q, 0, self.v, 0, S)
        return *(np.array(x, float) for x in found), S

    def rows(self, d: np.ndarray, M: np.ndarray, wF=ZERO, wM=ZERO, v=ZERO) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """phi, directions (rows, 6) and gamma for the frame M at d from F, in world axes."""
        n = len(self.spec.rows_when_cut)
        phi, G, gamma = np.full(n, np.nan), np.full((n, 6), np.nan), np.full(n, np.nan)
        frames = tuple(self.F.T.ravel()), tuple(M.T.ravel())
        plain.joint_rows(self.spec.kind, *frames, self.par, *map(tuple, (d, wF, wM, v)), phi, G, gamma, 0)
        return phi, G, gamma


def sample(joint: type[Joint], seed: int = 0) -> Sample:
    rng = np.random.default_rng(seed)
    spec = random_joint(joint.model_fields["type"].default, rng)
    A, par = spec.axes(ld.Mechanism("one").resolver(), "joint", ())
    start = spec.measure(I3, ZERO, par)
    made = Sample(spec, A, par, start, rng.normal(size=len(spec.speeds)), random_rotation(rng), rng)
    return made._replace(q=made.plus(rng.uniform(-1, 1, len(spec.speeds))))


# -------------------------------------------------------------------------------------------------- facts


@every_type
def test_a_type_declares_all_facts_and_its_file_has_all_functions(joint):
    declared = [name for name, kind in Joint.__annotations__.items() if "ClassVar" in str(kind)]
    assert [name for name in declared if not hasattr(joint, name)] == []
    assert len(joint.dimensions) == len(joint.coordinates)
    assert len(joint.speed_dimensions) == len(joint.speeds)
    assert len(joint.row_dimensions) == len(joint.rows_when_cut)
    assert len(joint.rows_when_cut) + len(joint.speeds) == 6
    assert joint.is_scalar() == ("number" not in joint.dimensions)
    assert set(joint.dimensions) <= {"angle", "length", "number"}
    assert {*joint.speed_dimensions, *joint.row_dimensions} <= {"angle", "length"}
    assert not joint.is_scalar() or joint.dimensions == joint.speed_dimensions
    assert joint.turning in get_args(Turning)
    assert joint.__module__ == f"loopdyn.joints.{joint.model_fields['type'].default}"
    own = importlib.import_module(joint.__module__)
    assert [f for f in (*DUTIES, *(FREEDOM_DUTIES if joint.speeds else ())) if not hasattr(own, f)] == []
    columns = [k for part in joint.bearing_loads.values() for k in part]
    assert len(set(columns)) == len(columns)
    assert set(columns) <= set(range(6))


@every_type
def test_coordinates_where_both_frames_coincide_are_those_of_the_type(joint):
    """The builder measures them once for a type, whatever its axes and pitch are."""
    rng = np.random.default_rng(5)
    found = [joint.measure(np.eye(3), np.zeros(3), (c, np.sqrt(1 - c * c))) for c in rng.uniform(-0.99, 0.99, 20)]
    assert all(np.array_equal(x, found[0]) for x in found)
    np.testing.assert_array_equal(np.delete(found[0], [k for k, c in enumerate(joint.coordinates) if c == "w"]), 0.0)


def test_codes_are_the_places_in_the_list():
    assert [t.kind for t in JOINT_TYPES] == list(range(len(JOINT_TYPES)))
    names = {t.__name__ for t in JOINT_TYPES}
    assert {t.__name__ for t in get_args(get_args(plain.AnyJoint)[0])} == names  # files can have them
    assert names <= set(ld.joints.__all__)
    assert {t.model_fields["type"].default for t in JOINT_TYPES} == set(TYPES)  # other tests have them


def test_a_type_that_kernels_do_not_know_is_refused_by_compile():
    class Odd(ld.Spherical):
        kind: ClassVar[int] = len(JOINT_TYPES)

    assert not is_known(Odd())
    m = ld.Mechanism("odd")
    m.add_body("b", ld.Inertia(1.0, (0, 0, 0), np.eye(3)))
    m.add_joint("A", Odd(), m.ground, "b", at=(0, 0, 0))
    with pytest.raises(ld.errors.ModelError, match="joint 'A': its type 'Odd' is not known"):
        m.compile()


def test_no_choice_falls_through_to_another_type():
    s, code = sample(ld.Free), len(JOINT_TYPES)
    frames = tuple(s.F.T.ravel()), tuple(s.M.T.ravel())
    F, A = tuple(s.F.ravel()), tuple(I3.ravel())
    q, phi = np.zeros(7), np.zeros(6)
    plain.read_joint(code, s.par, (0, 0, 0), A, q, 0)
    plain.joint_rows(code, *frames, s.par, *[(0, 0, 0)] * 4, phi, np.zeros((6, 6)), np.zeros(6), 0)
    found = [
        plain.joint_rotation(code, A, s.par, s.q, 0),
        plain.joint_pose(code, s.par, s.q, 0)[1],
        plain.joint_motion(code, F, F, A, s.par, s.q, 0, s.v, 0, np.zeros((6, 6)))[0],
        plain.joint_coordinate(code, 0, *frames, s.par, np.ones(3)),
        plain.joint_wrench(code, 0, *frames, s.par),
        q[0],
        phi[0],
    ]
    assert all(np.isnan(x).all() for x in found)


@every_type
def test_turning_says_how_the_child_can_turn(joint):
    s = sample(joint)
    _, E = s.pose()
    rank = np.linalg.matrix_rank(s.motion()[-1][:, :3]) if joint.speeds else 0
    assert rank == {"none": 0, "about z": 1, "about two axes": 2, "about a point": 3}[joint.turning]
    if joint.turning == "about z":
        np.testing.assert_allclose(E[2], [0, 0, 1], **ROUNDING)
        angle = s.q[joint.dimensions.index("angle")]
        np.testing.assert_allclose(
            E[:2, :2], [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]], **ROUNDING
        )
    assert len(joint.spins()) == (3 if joint.turning == "about a point" and joint.rows_when_cut else 0)


@every_type
def test_kernels_write_out_what_the_motion_says(joint):
    S = sample(joint).motion()[-1]
    assert bool(plain.is_pin(joint.kind)) == (joint is ld.Revolute)
    assert bool(plain.turns_only(joint.kind)) == (len(S) > 0 and not S[:, 3:].any())
    for k in range(len(joint.coordinates)):
        if joint.is_scalar():
            assert bool(plain.is_periodic(joint.kind, k)) == joint.is_periodic(k)


@every_type
def test_directions_and_constants_seen_in_its_frame_make_the_same_joint(joint):
    s = sample(joint)
    seen = s.spec.axes_in_frame(s.par)
    constants = dict(zip(joint.constants, s.par, strict=False))
    A, par = joint(**seen, **constants).axes(ld.Mechanism("one").resolver(), "joint", ())
    np.testing.assert_allclose(A, I3, **ROUNDING)
    np.testing.assert_allclose(par, s.par, **ROUNDING)
    given = {"axis", "axis1", "axis2", "normal"} & set(joint.model_fields)
    for key in given:  # of any length
        direction = np.array(getattr(s.spec, key))
        np.testing.assert_allclose(s.A.T @ seen[key], direction / np.linalg.norm(direction), **ROUNDING)


# -------------------------------------------------------------------------------------------------- poses


@every_type
def test_the_pose_is_that_of_the_notation_and_the_tree_places_the_body_there(joint):
    for seed in range(5):
        s = sample(joint, seed)
        d, E = s.pose()
        x, R = placement(s.spec, s.q)
        np.testing.assert_allclose(s.A.T @ d, x, **ROUNDING)
        np.testing.assert_allclose(s.A.T @ E @ s.A, R, **ROUNDING)
        shared = plain.joint_rotation(joint.kind, tuple(s.A.ravel()), s.par, s.q, 0)
        np.testing.assert_allclose(np.reshape(shared, (3, 3)), R, **ROUNDING)
        np.testing.assert_allclose(s.motion()[0], s.F @ d, **ROUNDING)


@every_type
def test_coordinates_are_read_from_the_pose_they_make(joint):
    for seed in range(5):
        s = sample(joint, seed)
        d, E = s.pose()
        np.testing.assert_allclose(s.spec.measure(E, d, s.par), s.q, atol=1e-12, rtol=0)  # the root of a trace
        turns = 2 * np.pi * np.array([bool(joint.dimensions[k] == "angle") for k in range(len(s.q))])
        q = np.where([x == "number" for x in joint.dimensions], -s.q, 0.9 * s.q + turns)  # the other quaternion
        periodic = [joint.is_periodic(k) for k in range(len(q))]
        wanted = np.where([x == "number" for x in joint.dimensions], -s.q, s.q + np.where(periodic, turns, 0.0))
        plain.read_joint(joint.kind, s.par, tuple(d), tuple(E.ravel()), q, 0)
        np.testing.assert_allclose(q, wanted, atol=1e-12, rtol=0)
        frames, d_world = (tuple(s.F.T.ravel()), tuple(s.M.T.ravel())), tuple(s.F @ d)
        for k in range(len(joint.speeds)):
            x = plain.joint_coordinate(joint.kind, k, *frames, s.par, d_world)
            assert x == pytest.approx(s.q[k] if joint.is_scalar() else 0.0, abs=1e-12)
            if joint.is_scalar():
                far = plain.nearest_turn(joint.kind, k, np.float64(x), np.float64(0.9 * x + 4 * np.pi))
                assert far == pytest.approx(x + (4 * np.pi if joint.is_periodic(k) else 0.0), abs=1e-12)


@every_type
def test_a_joint_reversed_by_sign_makes_the_inverse_pose_with_its_axes_turned(joint):
    if not joint.reversed_by_sign:
        pytest.skip("the kernel inverts its motion; tests/unit/test_joints.py compares the bodies")
    s = sample(joint)
    d, E = (s.A.T @ s.pose()[0]), s.A.T @ s.pose()[1] @ s.A
    A, S = tuple((-s.A).ravel()), np.zeros((6, 6))
    R = np.reshape(plain.joint_rotation(joint.kind, A, s.par, s.q, 0), (3, 3))
    frames = tuple(I3.ravel()), tuple(R.ravel())
    x = plain.joint_motion(joint.kind, *frames, A, s.par, s.q, 0, s.v, 0, S)[0]
    np.testing.assert_allclose(R, E.T, **ROUNDING)
    np.testing.assert_allclose(x, -E.T @ d, **ROUNDING)


# ------------------------------------------------------------------------------------------------- motion


def velocity(s: Sample, path) -> np.ndarray:
    """Angular velocity and velocity of M seen from F, world axes, on a path of coordinates at 0."""
    E, dE = s.pose(path(0.0))[1], first_derivative(lambda x: s.pose(path(x))[1], H)
    W = dE @ E.T
    w = np.array([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]]) / 2
    return np.concatenate([s.F @ w, s.F @ first_derivative(lambda x: s.pose(path(x))[0], H)])


@every_type
def test_the_motion_subspace_is_the_derivative_of_the_pose(joint):
    for seed in range(3):
        s = sample(joint, seed)
        _, w, dd, _, _, S = s.motion()
        found = velocity(s, lambda x, s=s: s.plus(x * s.v))
        np.testing.assert_allclose(s.v @ S, found, **DIFFERENCE)
        np.testing.assert_allclose(np.concatenate([w, dd]), found, **DIFFERENCE)
        np.testing.assert_allclose(twists(s.spec, s.F, s.M, s.par), S, **ROUNDING)


@every_type
def test_the_bias_is_the_rate_of_the_velocity_at_constant_speeds(joint):
    s = sample(joint)
    _, _, _, cj, cl, _ = s.motion()

    def at(x: float) -> np.ndarray:
        q = s.plus(x * s.v + 0.5 * x * x * s.spec.curvature(s.v))
        return np.concatenate(s.motion(q)[1:3])

    np.testing.assert_allclose(np.concatenate([cj, cl]), first_derivative(at, H), **DIFFERENCE)


@every_type
def test_increments_are_taken_back_and_move_at_their_rate(joint):
    s = sample(joint)
    n = len(s.v)
    xi, back = s.rng.uniform(-0.8, 0.8, n), np.empty(n)
    plain.joint_minus(joint.kind, n, s.q, s.plus(xi), 0, back, 0)
    np.testing.assert_allclose(back, xi, atol=1e-12, rtol=0)
    np.testing.assert_allclose(s.plus(np.zeros(n)), s.q, **ROUNDING)
    np.testing.assert_allclose(s.rate(np.zeros(n), s.v), s.v, **ROUNDING)
    rate, there = s.rate(xi, s.v), s.plus(xi)
    found = velocity(s, lambda x: s.plus(xi + x * rate))
    S = s.motion(there)[-1]
    np.testing.assert_allclose(s.v @ S, found, **DIFFERENCE)
    np.testing.assert_allclose(s.spec.curvature(s.v), first_derivative(lambda x: s.rate(x * s.v, s.v), H), **DIFFERENCE)


@every_type
def test_gradients_of_angles_and_lengths_are_derivatives_of_increments(joint):
    s = sample(joint)
    for k, dimension in enumerate(joint.dimensions):
        if dimension != "number":
            found = first_derivative(lambda x: s.plus(x * s.v), H)[k]
            assert joint.gradient(k, s.pose()[1]) @ s.v == pytest.approx(found, abs=1e-9)


@every_type
def test_mean_speeds_are_those_in_the_middle_of_a_straight_increment(joint):
    s = sample(joint)
    n, h = len(s.v), 0.3
    xi, v = s.rng.uniform(-0.8, 0.8, n), np.empty(n)
    plain.joint_mean_speeds(joint.kind, n, xi, h, 0, v)
    np.testing.assert_allclose(s.rate(0.5 * xi, v), xi / h, **ROUNDING)


# -------------------------------------------------------------------------------------------------- loads


@every_type
def test_rows_vanish_where_the_joint_is_and_do_no_work_on_its_freedoms(joint):
    for seed in range(3):
        s = sample(joint, seed)
        phi, G, _ = s.rows(s.F @ s.pose()[0], s.M)
        S = s.motion()[-1]
        np.testing.assert_allclose(phi, 0.0, **ROUNDING)
        np.testing.assert_allclose(G @ S.T, 0.0, **ROUNDING)
        assert np.linalg.matrix_rank(np.vstack([G, S]), tol=1e-6) == 6
        seen = np.hstack([G[:, :3] @ s.F, G[:, 3:] @ s.F])
        np.testing.assert_allclose(s.spec.row_wrenches(s.pose()[1], s.par), seen, **ROUNDING)
        assert joint.rows_vary or np.allclose(s.spec.row_wrenches(I3, s.par), seen, **ROUNDING)
        for row, name, dimension in zip(seen, joint.rows_when_cut, joint.row_dimensions, strict=True):
            assert bool(row[3:].any()) == (dimension == "length")
            if name in COMPONENTS:
                np.testing.assert_allclose(row, np.eye(6)[COMPONENTS.index(name)], **ROUNDING)


@every_type
def test_rows_and_gamma_are_derivatives_of_their_residuals(joint):
    """F stands, M moves on with constant velocities from a pose that is not closed."""
    s = sample(joint)
    d0, w, v = s.F @ s.pose()[0] + 0.1 * s.rng.normal(size=3), s.rng.normal(size=3), s.rng.normal(size=3)
    M0 = s.M @ random_turn(0.2 * s.rng.normal(size=3))

    def phi(x: float) -> np.ndarray:
        return s.rows(d0 + x * v, random_turn(x * w) @ M0)[0]

    _, G, gamma = s.rows(d0, M0, ZERO, w, v)
    np.testing.assert_allclose(G @ np.concatenate([w, v]), first_derivative(phi, H), **DIFFERENCE)
    np.testing.assert_allclose(-gamma, second_derivative(phi, 10 * H), atol=1e-6, rtol=0)  # rounding / h^2, h^4


def random_turn(vector: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation as Turn

    return Turn.from_rotvec(vector).as_matrix()


@every_type
def test_the_wrench_of_a_freedom_works_on_its_speed_and_no_other(joint):
    s = sample(joint)
    *_, S = s.motion()
    W = wrenches(s.spec, s.F, s.M, s.par)
    np.testing.assert_allclose(W @ S.T, np.eye(len(s.v)), **ROUNDING)


@every_type
def test_the_rate_of_the_wrench_leaves_constant_speeds_without_acceleration(joint):
    """Of x' = torque . w + force . v the derivative vanishes at constant speeds while F turns."""
    s = sample(joint)
    _, w, dd, cj, cl, _ = s.motion()
    wF = s.rng.normal(size=3)
    frames = tuple(s.F.T.ravel()), tuple(s.M.T.ravel())
    for k in range(len(s.v)):
        torque, force = plain.joint_wrench(joint.kind, k, *frames, s.par)
        rates = plain.joint_wrench_rate(joint.kind, k, *frames, s.par, tuple(wF), tuple(wF + w), torque, force)
        x2 = np.dot(torque, np.cross(wF, w) + cj) + np.dot(rates[0], w) + np.dot(force, cl) + np.dot(rates[1], dd)
        assert x2 == pytest.approx(0.0, abs=1e-12)


# ----------------------------------------------------------------------------------- where a type is named

# Files that name joint types, and why. A new type is named in the first three. The others ask whether a joint is one of
# those that they treat, and say in words or treat in general what they do with the rest.
NAMED_IN = {
    "__init__.pyi": "list of public names",
    "joints/__init__.py": "list of public names",
    "joints/dispatch.py": "chooses by code",
    "analysis/all_poses.py": "a rod between two balls turns about itself; welds do not move",
    "analysis/equations.py": "symbolic equations of planar mechanisms; others are refused",
    "analysis/equations_in_space.py": "symbolic equations of pins, slides and balls; others are refused",
    "analysis/transmission_angle.py": "is defined for pins and slides; others are refused",
    "formulations/absolute/formulation.py": "barycentres of pins, universal joints and balls; others keep their rows",
    "formulations/closure/closed_forms.py": "a rod between two balls",
    "formulations/closure/joint_geometry.py": "axes of sleeves",
    "formulations/closure/planner.py": "recognises groups that close in closed form; others close by iteration",
    "formulations/momentum/published_scheme.py": "equations of the paper's four joints; others are refused",
    "interchange/mjcf/equalities.py": "from MuJoCo's equalities",
    "interchange/mjcf/imported.py": "from MuJoCo's free joint",
    "interchange/mjcf/loads.py": "from MuJoCo's free joint",
    "interchange/mjcf/schema.py": "MuJoCo's own word",
    "interchange/mjcf/tree.py": "from MuJoCo's joints",
    "interchange/mjcf/writing.py": "to MuJoCo's joints; others are refused",
    "interchange/sdf/reading.py": "from the joints of SDFormat",
    "interchange/urdf_reading.py": "from the joints of URDF",
    "interchange/urdf_writing.py": "to the joints of URDF; others stand beside it in words",
    "library/_common.py": "builds with it",
    "library/benchmarks.py": "builds with it",
    "library/ladders.py": "builds with it",
    "library/machines.py": "builds with it",
    "library/planar.py": "builds with it",
    "library/random.py": "draws joints at random, those that it knows",
    "library/spatial.py": "builds with it",
    "model/inertia.py": "a planar inertia, no joint",
    "output/drawing.py": "motion in a plane: pins, slides and planar joints; others are drawn in space",
    "output/plot/mechanism.py": "symbols; others have a common one",
    "studies/clearance.py": "offsets of pins, which have clearance",
    "system/builder.py": "the argument `free`, no joint",
    "system/placement.py": "bodies without a joint hang on a free one",
    "system/topology.py": "how it prints them",
}
# In how many files outside its own each type is named: fewer is better, more is not allowed.
AT_MOST = {
    "weld": 14, "revolute": 24, "prismatic": 20, "helical": 7, "cylindrical": 9, "universal": 12, "planar": 9,
    "translational": 6, "spherical": 20, "free": 14,
}  # fmt: skip


def named_types(source: str) -> set[str]:
    """Joint types that code names: by class, code, module or string; comments and docstrings do not count."""
    kinds = {t.model_fields["type"].default: t.__name__ for t in JOINT_TYPES}
    words = {word: kind for kind, name in kinds.items() for word in (name, kind.upper())}
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in kinds:
            found.add(node.value)
        elif isinstance(node, ast.Name):
            found.add(words.get(node.id))
        elif isinstance(node, ast.alias):
            found.add(node.name if node.name in kinds else words.get(node.name))
    found.discard(None)
    return found


def test_a_type_is_named_in_few_files_beside_its_own():
    root = Path(ld.__file__).parent
    found: dict[str, set[str]] = {}
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.pyi")]):
        where = path.relative_to(root).as_posix()
        own = {path.stem} if where.startswith("joints/") else set()
        named = named_types(path.read_text()) - own
        if named:
            found[where] = named
    assert sorted(found) == sorted(NAMED_IN)  # a file that names none any more leaves the list
    counts = {kind: sum(kind in named for named in found.values()) for kind in AT_MOST}
    assert counts.keys() == {t.model_fields["type"].default for t in JOINT_TYPES}
    assert {kind: n for kind, n in counts.items() if n > AT_MOST[kind]} == {}
