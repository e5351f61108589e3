"""`Graph` on mechanisms of all topologies, in generic orientation: against the oracle, closed forms and 40 digits."""

from __future__ import annotations

from collections.abc import Iterator

import mpmath
import numpy as np
import pytest
from tests.loops import crossed, nested, poison

import loopdyn as ld
from loopdyn.loops.elimination.solver import Elimination
from loopdyn.loops.projection import project
from loopdyn.loops.rank import decide, scaled

TURNED = ld.library.turned
G = 9.81


def error(system: ld.System, found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference in natural units over the largest acceleration."""
    units = system.speed_units
    return float(np.abs((found - expected) / units).max() / np.abs(expected / units).max())


def disagreement(system: ld.System, state: ld.State) -> float:
    solution = ld.accelerations(system, state, "graph", full=True)
    assert solution.diagnostics["rows_dropped"] == decide(system, state).redundant
    now = ld.terms(system, state)
    left = now.M @ solution.a - now.h - now.J.T @ solution.lam
    sizes = np.abs(now.M) @ np.abs(solution.a) + np.abs(now.h) + np.abs(now.J.T) @ np.abs(solution.lam)
    assert np.abs(left * system.speed_units).max() < 1e-10 * (sizes * system.speed_units).max()
    return error(system, solution.a, ld.accelerations(system, state, "oracle"))


# ------------------------------------------------------------------------------------------ against the oracle

LONG = {"ladder(20)": ld.library.ladder(20), "star_ladder(20)": ld.library.star_ladder(20)}
MECHANISMS = {
    **{f"ladder({L})": ld.library.ladder(L) for L in (1, 2, 5, 10)},
    **{f"star_ladder({L})": ld.library.star_ladder(L) for L in (1, 2, 5, 10)},
    **{f"tower({L})": ld.library.tower(L) for L in (1, 2, 4, 8, 12)},
    "stewart_6ups": ld.library.stewart_6ups(),
    "stewart_3rrs": ld.library.stewart_3rrs(),
    "bricard": ld.library.bricard(),
    "bennett": ld.library.bennett(),
    "andrews": ld.library.andrews(),
    **{f"nested({depth})": nested(depth) for depth in (1, 2, 4, 6)},
    "crossed": crossed(),
}


@pytest.mark.parametrize("name", [*MECHANISMS, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)])
def test_equal_to_the_oracle(name):
    """At the start of the model and at a state drawn beside it, both with speeds."""
    system = TURNED((MECHANISMS | LONG)[name]).compile()
    rng = np.random.default_rng(4)
    start = ld.assemble(system)
    v = system.speed_units * rng.normal(size=system.nv)
    beside = ld.tree.increment(system, start.q, 0.2 * system.speed_units * rng.normal(size=system.nv))
    for q in (start.q, beside):
        state = ld.assemble(system, q=q, v=v)
        assert np.abs(state.v).max() > 0.1
        assert disagreement(system, state) < 1e-10


def windows(N: int, angle: float, speed: float = 1.3) -> tuple[ld.System, ld.State]:
    """`n_four_bar` with all cranks at `angle` from the vertical; couplers stay level."""
    system = TURNED(ld.library.n_four_bar(N)).compile()
    sign = np.array([-1.0 if label.startswith("B") else 1.0 for label in system.coordinates])
    return system, system.state(sign * angle, sign * speed)


def fall(N: int, angle: float) -> float:
    """Acceleration of the cranks: N + 1 bars that turn about their ends and N that are carried along.

    T = m l^2 ((N + 1)/3 + N) w^2/2, V = m g l ((N + 1)/2 + N) cos(angle), m = l = 1.
    """
    return G * ((N + 1) / 2 + N) * np.sin(angle) / ((N + 1) / 3 + N)


@pytest.mark.parametrize("N", [1, 2, 3, 5, 8, 12, 16, 20])
def test_row_of_windows_away_from_flat(N):
    for angle in (0.0, 0.4, 1.2, -1.4):
        system, state = windows(N, angle)
        if angle != 0.0:  # upright nothing accelerates
            assert disagreement(system, state) < 1e-10
        a = np.abs(ld.accelerations(system, state, "graph"))
        np.testing.assert_allclose(a, abs(fall(N, angle)), rtol=0, atol=1e-10 * G)


@pytest.mark.parametrize("N", [1, 2, 5, 10, 20])
def test_row_of_windows_a_hair_from_flat(N):
    """1e-5 rad from where N more freedoms appear, on both sides, and by a solver that comes from far."""
    far = windows(N, 0.3)[1]
    for angle in (np.pi / 2 - 1e-5, np.pi / 2 + 1e-5):
        system, state = windows(N, angle)
        for start in (state, far):
            solution = ld.prepare(system, "graph", start)(0.0, state.q, state.v)
            np.testing.assert_allclose(np.abs(solution.a), fall(N, angle), rtol=1e-9)
            assert (
                0.0 < solution.diagnostics["smallest_pivot"] < 1e-8
            )  # the indicator of a pose that is nearly singular


@pytest.mark.parametrize("N", [1, 2, 5, 20])
def test_row_of_windows_when_flat_is_refused_in_words(N):
    system, far = windows(N, 0.3)
    _, flat = windows(N, np.pi / 2)
    solve = ld.prepare(system, "graph", far)
    with pytest.raises(
        ld.errors.SingularityError, match=r"'n_four_bar' is in a singular pose at t = 0 s: .* see ld.mobility"
    ):
        solve(flat.t, flat.q, flat.v)
    solution = solve(far.t, far.q, far.v)  # and goes on elsewhere
    np.testing.assert_allclose(np.abs(solution.a), fall(N, 0.3), rtol=1e-11)


@pytest.mark.parametrize("N", [1, 3, 10])
def test_towards_flat_a_right_number_or_an_error(N):
    """Rounding times the inverse distance is what can be expected; near enough the pose is refused."""
    system, far = windows(N, 0.3)
    solve, refused = ld.prepare(system, "graph", far), 0
    for distance in 10.0 ** -np.arange(1.0, 14.0):
        _, state = windows(N, np.pi / 2 - distance)
        try:
            a = solve(state.t, state.q, state.v).a
        except ld.errors.SingularityError:
            refused += 1
            continue
        assert not refused  # no number where one was refused farther out
        np.testing.assert_allclose(np.abs(a), fall(N, np.pi / 2 - distance), rtol=3e-15 * N / distance)
    assert refused > 3


def test_undefined_row_is_named_and_the_solver_goes_on():
    """A distance whose points coincide has no direction."""
    m = ld.Mechanism("bob", gravity=(0, 0, -G))
    m.add_body("bob", ld.Inertia.sphere(mass=1.0, radius=0.1, at=(1, 0, 0)))
    m.add_joint("T", ld.joints.Translational(), m.ground, "bob", at=(1, 0, 0))
    m.add_constraint("string", ld.constraints.Distance(body1="bob", body2=m.ground, point1=(1, 0, 0), point2=(0, 0, 0)))
    system = m.compile()
    state = system.state()
    solve = ld.prepare(system, "graph", state)
    for _ in range(2):
        np.testing.assert_allclose(solve(0.0, state.q, state.v).a, [0, 0, -G], atol=1e-14)
        with pytest.raises(ld.errors.SingularityError, match=r"'string' is not defined"):
            solve(0.0, np.array([-1.0, 0.0, 0.0]), state.v)


# ------------------------------------------------------------------------------------------ heavy and light


def exact(system: ld.System, state: ld.State) -> np.ndarray:
    """The equations M a = h + J^T lam, J a = gamma with 40 digits."""
    now, nv, nc = ld.terms(system, state), system.nv, system.nc
    matrix = np.block([[now.M, -now.J.T], [now.J, np.zeros((nc, nc))]])
    with mpmath.workdps(40):
        x = mpmath.lu_solve(mpmath.matrix(matrix.tolist()), mpmath.matrix([*now.h.tolist(), *now.gamma.tolist()]))
        return np.array([float(x[k]) for k in range(nv)])


def uneven(m: ld.Mechanism, ratio: float, first: int) -> ld.Mechanism:
    """Every second body `ratio` times as heavy."""
    for k, (name, body) in enumerate(m.bodies.items()):
        if k % 2 == first:
            inertia = type(body.inertia)(
                **{c: ratio * x for c, x in body.inertia.model_dump().items() if x is not None}
            )
            m.bodies[name] = body.model_copy(update={"mass": ratio * body.mass, "inertia": inertia})
    return m


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("ratio", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("build", [ld.library.star_ladder, ld.library.tower, crossed], ids=lambda f: f.__name__)
def test_heavy_bodies_beside_light_ones(build, ratio, first):
    """The accuracy that is reported (residual, smallest pivot) bounds the error."""
    system = uneven(TURNED(build()), ratio, first).compile()
    v = system.speed_units * np.random.default_rng(0).normal(size=system.nv)
    state = ld.assemble(system, v=v)
    solution = ld.accelerations(system, state, "graph", full=True)
    report = solution.diagnostics
    found = error(system, solution.a, exact(system, state))
    assert found < 1e-10
    assert report["residual"] < 1e-12
    assert found < 10 * max(report["residual"], np.finfo(float).eps) / report["smallest_pivot"]


# ------------------------------------------------------------------------------------------ around the circle


def carried(system: ld.System, state: ld.State, steps: int, step: float = 0.05) -> Iterator[ld.State]:
    """Closed states along the motion of a mechanism with one degree of freedom, with speeds."""
    ahead = np.ones(system.nv)
    for _ in range(steps):
        for move in (step, 0.0):
            J = scaled(system, ld.terms(system, state).J)
            (n,) = np.linalg.svd(J)[2][system.nv - 1 :]
            n = n * system.speed_units
            ahead = n * np.sign(n @ ahead) / np.abs(n / system.speed_units).max()
            if move:
                q = ld.tree.increment(system, state.q, move * ahead)
                state = project(system, ld.State(0.0, q, ahead)).state
        state = ld.State(0.0, state.q, 2.0 * ahead)
        yield state


def chosen_again(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Receives the time of every choice of rows."""
    calls: list[float] = []
    choose = Elimination.choose

    def counted(self, state, count=None):
        calls.append(state.t)
        choose(self, state, count)

    monkeypatch.setattr(Elimination, "choose", counted)
    return calls


AROUND = {
    # mechanism, pose to start from, whether rows chosen at the start become poor on the way
    "four_bar": (ld.library.four_bar(), {}, False),
    "bricard": (ld.library.bricard(), {"P1": 0.3}, True),
    "bennett": (ld.library.bennett(), {}, True),
    "nested": (nested(1), {}, False),
}


@pytest.mark.parametrize("name", AROUND)
def test_one_solver_serves_all_poses_of_a_linkage(name, monkeypatch):
    """Thirteen radians of the fastest joint; rows are chosen again where those of the start become poor."""
    m, q, again = AROUND[name]
    system = TURNED(m).compile()
    start = ld.assemble(system, q=q)
    solve = ld.prepare(system, "graph", start)
    calls = chosen_again(monkeypatch)
    oracle = ld.prepare(system, "oracle", start)
    units = system.speed_units
    for state in carried(system, start, 260):
        expected = oracle(state.t, state.q, state.v).a
        solution = solve(state.t, state.q, state.v)
        # the velocity terms are of order four where the accelerations happen to be small
        scale = max(np.abs(expected / units).max(), 4.0)
        assert np.abs((solution.a - expected) / units).max() < 1e-10 * scale
        assert solution.diagnostics["smallest_pivot"] > 1e-3
        np.testing.assert_array_equal(solve.accelerations(state.t, state.q, state.v), solution.a)
    assert (len(calls) > 0) == again


def test_rows_chosen_beside_a_singular_pose_are_not_kept_for_ever(monkeypatch):
    """A linkage prepared while another one is nearly flat: small pivots there are no measure for later ones."""
    flat = TURNED(ld.library.n_four_bar(1))
    both = flat.model_copy(deep=True)
    linkage = TURNED(ld.library.bricard())
    both.bodies.update(linkage.bodies)
    both.joints.update(linkage.joints)
    system, alone = both.compile(), linkage.compile()

    def joined(angle: float, state: ld.State) -> ld.State:
        sign = {"A": 1.0, "B": -1.0, "C": 1.0}
        q = {label: sign[label[0]] * angle for label in system.coordinates if label[0] in sign}
        v = {label: sign[label[0]] for label in system.coordinates if label[0] in sign}
        q |= dict(zip(alone.coordinates, state.q.tolist(), strict=True))
        v |= dict(zip(alone.speeds, state.v.tolist(), strict=True))
        return system.state(q, v)

    start = ld.assemble(alone, q={"P1": 0.3})
    solve = ld.prepare(system, "graph", joined(np.pi / 2 - 1e-5, start))
    calls = chosen_again(monkeypatch)
    least = 1.0
    for state in carried(alone, start, 260):
        there = joined(0.5, state)
        solution = solve(0.0, there.q, there.v)
        least = min(least, solution.diagnostics["smallest_pivot"])
    assert calls
    assert least > 1e-3


# ------------------------------------------------------------------------------------------ what was left behind


@pytest.mark.parametrize("name", ["tower(4)", "bennett", "nested(2)", "crossed", "stewart_6ups"])
def test_solver_does_not_use_what_is_left_in_its_work_array(name):
    system = TURNED(MECHANISMS[name]).compile()
    state = ld.assemble(system, v=system.speed_units * np.random.default_rng(0).normal(size=system.nv))
    solve = ld.prepare(system, "graph", state)
    before = solve(state.t, state.q, state.v)
    poison(solve.elimination)
    after = solve(state.t, state.q, state.v)
    np.testing.assert_array_equal(after.a, before.a)
    np.testing.assert_array_equal(after.lam, before.lam)
    assert after.diagnostics == before.diagnostics


def test_dropped_rows_that_contradict_the_kept_ones_are_seen_in_the_residual():
    """Two drivers of one joint agree in position and speed at t = 0 and ask for accelerations 0 and 2."""
    m = ld.Mechanism("contradiction", gravity=(0, -9.81, 0))
    rod = m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0), radius=0.01))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, rod, at=(0, 0, 0))
    m.add_driver("first", "A", "t")
    m.add_driver("second", "A", "t + t**2")
    system = m.compile()
    found = ld.accelerations(system, ld.assemble(system), "graph", full=True)
    assert found.diagnostics["rows_dropped"] == 1.0
    assert found.diagnostics["residual"] == pytest.approx(1.0)  # all of the largest term, 2
