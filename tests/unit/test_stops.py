"""Stops: impacts, rest and separation against closed forms and momentum balances that are written out here."""

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import loopdyn as ld
from loopdyn.contacts import SphereOnPlane, Stop
from loopdyn.loops.complementarity import solve_lcp

G = 9.81
ROUNDING = 1e-12  # of sums of a dozen numbers of the order of one
DOWN, X, Z = (0, 0, -G), (1, 0, 0), (0, 0, 1)


def ball(restitution, **model) -> ld.System:
    """A ball of 2 kg on a vertical slide; the floor is at zero."""
    m = ld.Mechanism("ball", gravity=DOWN, **model)
    m.add_body("ball", ld.Inertia.sphere(mass=2.0, radius=0.1))
    m.add_joint("z", ld.Prismatic(axis=Z), "ground", "ball", at=(0, 0, 0))
    m.add_contact("floor", Stop(joint="z", lower=0.0, restitution=restitution))
    return m.compile()


def drop(system: ld.System, end: float, **options) -> ld.results.Run:
    return ld.simulate(system, system.state(q={"z": 1.0}), (0, end), progress=False, **options)


def times(run, kind: str) -> list[float]:
    return [e.t for e in run.events if e.kind == kind]


# ---------------------------------------------------------------------------------------------- a ball


@pytest.mark.jit_off
def test_a_bouncing_ball_comes_to_rest_when_the_series_of_its_rebounds_ends():
    """Falls from 1 m in sqrt(2/g), then flights of 2 e^k sqrt(2/g): at rest at sqrt(2/g) (1 + e)/(1 - e)."""
    e, fall = 0.8, np.sqrt(2 / G)
    run = drop(ball(e), 6.0)
    assert run.status == "finished"
    hits = np.array(times(run, "impact"))
    k = np.arange(1, 15)
    expected = fall * (1 + 2 * e * (1 - e**k) / (1 - e))
    # a root located to rounding of the time has an error of some 1e-16 relative; each flight adds one
    np.testing.assert_allclose(hits[k], expected, rtol=1e-12)
    (rest,) = times(run, "contact")
    assert rest == pytest.approx(4.0637127689, abs=5e-11)  # as many digits as are given
    assert rest == pytest.approx(fall * (1 + e) / (1 - e), abs=1e-11)
    for n in range(10):  # half-way between two impacts it is at the top, 1 m e^(2 k) high
        top = run.at((hits[n] + hits[n + 1]) / 2) if hits[n + 1] - hits[n] > 0.1 else None
        assert top is None or top["z"] == pytest.approx(e ** (2 * n + 2), abs=1e-9)  # between outputs: quintic, exact
    lost = [event.energy_loss for event in run.events if event.kind == "impact"]
    assert lost[0] == pytest.approx(2.0 * G * (1 - e**2), rel=1e-12)
    assert sum(lost) == pytest.approx(2.0 * G, rel=1e-12)  # all energy is booked
    assert run.energy_error < 1e-12
    assert run["floor.gap"].min() >= 0.0
    assert run["z"][-1] == 0.0
    assert run["z.speed"][-1] == 0.0
    np.testing.assert_allclose(run["floor.force"][[0, -1]], [0.0, 2.0 * G], rtol=1e-12)
    # impulses of the impacts and the force at rest carry the weight over all the time, but for the rebounds left out:
    # their time, at most 2 sqrt(2 1e-12/g)/(1 - e) s
    carried = run["floor.impulse"][-1] + 2.0 * G * (6.0 - rest)
    assert carried == pytest.approx(2.0 * G * 6.0, abs=2.0 * G * 5e-6)


@pytest.mark.jit_off
@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_plastic_and_elastic_balls(restitution):
    run = drop(ball(restitution), 3.0)
    fall = np.sqrt(2 / G)
    if restitution == 0.0:
        assert times(run, "impact") == pytest.approx([fall], rel=1e-13)
        assert times(run, "contact") == pytest.approx([fall], rel=1e-13)
        assert run["z"][-1] == 0.0
    else:
        np.testing.assert_allclose(times(run, "impact"), fall * np.array([1, 3, 5]), rtol=1e-12)
        assert not times(run, "contact")
        assert run["z"].max() == pytest.approx(1.0, abs=1e-12)
    assert run.energy_error < 1e-12
    first = run.events[0].impulse.multipliers["floor"]
    assert first == pytest.approx((1 + restitution) * 2.0 * G * fall, rel=1e-12)


@pytest.mark.jit_off
@pytest.mark.parametrize("speed", [0.0, 1e-6, 1e-5, 3e-5, 1e-3])
def test_a_rebound_that_stays_below_rounding_does_not_pass_the_stop(speed):
    """Below the floor by 7e-11 m, as after an impact of another contact at the same time: up to 1e-5 m/s, the rebound
    rises by less (speed^2/(2 g)), so the gap never opens. The ball once fell through the floor there."""
    system = ball(0.5)
    run = ld.simulate(system, system.state(q={"z": -7e-11}, v={"z": speed}), (0, 0.5), progress=False)
    assert run.status == "finished"
    assert run["floor.gap"].min() > -1e-9  # by which a start may be below it
    np.testing.assert_allclose(run["floor.force"].values[-1], 2.0 * G, rtol=ROUNDING)
    # the energy at the start is lost, up to the weight times the depth that remains: 2 kg g 1e-9 m
    np.testing.assert_allclose(sum(e.energy_loss for e in run.events), speed**2, rtol=1e-9, atol=2e-8)


def test_a_ball_rests_for_an_hour_without_creep_and_without_cost():
    system = ball(0.5)
    run = ld.simulate(system, system.state(), (0, 3600.0), t_eval=[0.0, 1800.0, 3600.0], progress=False)
    assert run.statistics.steps < 30  # a step is at most a tenth of the span
    assert (run["z"] == 0.0).all()
    assert (run["z.speed"] == 0.0).all()
    np.testing.assert_allclose(run["floor.force"], 2.0 * G, rtol=1e-14)


@pytest.mark.jit_off
def test_units_of_the_model_hold_for_bounds_and_results():
    system = ball(0.0, units={"length": "mm", "force": "N"})
    run = ld.simulate(system, system.state(q={"z": 1000.0}), (0, 1.0), progress=False)
    assert run["floor.gap"][0] == pytest.approx(1000.0)
    assert run["floor.gap"].units == "mm"
    assert run["floor.impulse"].units == "N*s"


@pytest.mark.jit_off
@pytest.mark.parametrize("beyond", [-1e-9, 0.0, 1e-9, 1e-3])
def test_a_part_that_just_reaches_a_stop(beyond):
    """Thrown up to a stop 1 m above, with a speed that is too large by `beyond`: grazing is no event, or a weak one."""
    m = ball(0.5).mechanism
    m.contacts["floor"] = Stop(joint="z", upper=1.0, restitution=0.5)
    system, speed = m.compile(), np.sqrt(2 * G) + beyond
    run = ld.simulate(system, system.state(v={"z": speed}), (0, 0.9), progress=False)
    assert run.status == "finished"
    assert not times(run, "contact")
    hits = [e for e in run.events if e.kind == "impact"]
    assert len(hits) == (beyond > 0.0)
    arrives = np.sqrt(max(speed**2 - 2 * G, 0.0))  # energy
    for hit in hits:
        # the square root of rounding
        assert hit.state.v[0] == pytest.approx(arrives, abs=1e-7)
        assert hit.t == pytest.approx((speed - arrives) / G, abs=1e-8)
    assert run.path.q.max() <= 1.0 + 1e-9
    assert run.energy_error < 1e-12


@pytest.mark.jit_off
def test_both_bounds_of_a_stop():
    """Without gravity between 0 and 1 m from 0.5 m at 1 m/s, e = 1: hits at 0.5, 1.5 and 2.5 s."""
    m = ball(1.0).mechanism
    m.gravity = (0, 0, 0)
    m.contacts["floor"] = Stop(joint="z", lower=0.0, upper=1.0, restitution=1.0)
    system = m.compile()
    run = ld.simulate(system, system.state(q={"z": 0.5}, v={"z": 1.0}), (0, 3.2), progress=False)
    assert [e.name for e in run.events] == [f"floor {side}: impact" for side in ("upper", "lower", "upper")]
    np.testing.assert_allclose(times(run, "impact"), [0.5, 1.5, 2.5], rtol=1e-13)
    assert run["z"].values[-1] == pytest.approx(0.3, abs=1e-13)  # three times, each to some 1e-15 s relative
    assert run["floor.impulse"].values[-1] == pytest.approx(3 * 2.0 * 2.0)


@pytest.mark.jit_off
def test_an_output_at_the_time_of_an_impact_is_the_state_before_it():
    """At the time of the event itself, which does not depend on the outputs."""
    hit = drop(ball(0.0), 1.0).events[0].t
    run = drop(ball(0.0), 1.0, t_eval=[0.0, hit, 1.0])
    assert run.events[0].t == hit
    np.testing.assert_allclose(run.path.q[:, 0], [1.0, 0.0, 0.0], atol=1e-14)  # rounding of the time, at 4.4 m/s
    np.testing.assert_allclose(run.path.v[:, 0], [0.0, -np.sqrt(2 * G), 0.0], rtol=1e-12)
    np.testing.assert_allclose(run["floor.force"].values, [0.0, 0.0, 2.0 * G], rtol=1e-12)


@pytest.mark.jit_off
def test_a_start_on_a_stop_with_a_force_that_lifts():
    """30 N against 2 kg from the floor on: no contact, z = (15 - g) t^2/2."""
    m = ball(0.0).mechanism
    m.add_motor("lift", "z", force=30.0)
    system = m.compile()
    run = ld.simulate(system, system.state(), (0, 0.5), progress=False)
    assert not run.events
    assert run["z"].values[-1] == pytest.approx((15.0 - G) * 0.5**2 / 2, rel=1e-12)


# ------------------------------------------------------------------------------- pressing and separating


@pytest.mark.jit_off
def test_a_weight_is_lifted_when_the_force_exceeds_it():
    """An upward force 10 t on 2 kg at rest on the floor: it leaves at t = 2 g/10, then z = (5/6) (t - t0)^3."""
    m = ld.Mechanism("lifted", gravity=DOWN)
    m.add_body("weight", ld.Inertia.sphere(mass=2.0, radius=0.1))
    m.add_joint("z", ld.Prismatic(axis=Z), "ground", "weight", at=(0, 0, 0))
    m.add_motor("lift", "z", force="10*t")
    m.add_contact("floor", Stop(joint="z", lower=0.0, restitution=0.5))
    system = m.compile()
    run = ld.simulate(system, system.state(), (0, 3.0), progress=False)
    assert [e.kind for e in run.events] == ["contact", "separation"]
    (t0,) = times(run, "separation")
    # it is let go when the force pulls by 1e-10 of the accelerations
    assert t0 == pytest.approx(2.0 * G / 10.0, abs=1e-9)
    later = run.path.t > t0 + 0.1
    np.testing.assert_allclose(run.path.q[later, 0], 5 / 6 * (run.path.t[later] - t0) ** 3, rtol=1e-7)
    assert run["floor.gap"].min() >= 0.0


@pytest.mark.jit_off
def test_a_swinging_weight_on_a_shaken_table_flies_and_lands():
    """A mass on a table that moves by a sin(w t): it leaves at sin(w t) = g/(a w^2) and lands as integrated."""
    a, w = 0.05, 20.0
    m = ld.Mechanism("shaken", gravity=DOWN)
    m.add_body("table", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_body("mass", ld.Inertia.sphere(mass=3.0, radius=0.1))
    m.add_joint("T", ld.Prismatic(axis=Z), "ground", "table", at=(0, 0, 0))
    m.add_joint("M", ld.Prismatic(axis=Z), "table", "mass", at=(0, 0, 0))
    m.add_driver("shake", "T", f"{a}*sin({w}*t)")
    m.add_contact("top", Stop(joint="M", lower=0.0))
    system = m.compile()
    state = ld.assemble(system, v={"M": 0.0})
    run = ld.simulate(system, state, (0, 0.3), progress=False)
    leaves = np.arcsin(G / (a * w**2)) / w
    assert times(run, "separation")[0] == pytest.approx(leaves, abs=1e-10)
    height, speed = a * np.sin(w * leaves), a * w * np.cos(w * leaves)

    def gap(t, y):
        return height + speed * (t - leaves) - G * (t - leaves) ** 2 / 2 - a * np.sin(w * t)

    gap.terminal, gap.direction = True, -1
    found = solve_ivp(lambda t, y: [0.0], (leaves + 0.01, 1.0), [0.0], events=gap, max_step=1e-3, rtol=1e-12)
    assert times(run, "impact")[0] == pytest.approx(float(found.t_events[0][0]), abs=1e-8)
    assert run["top.gap"].min() >= -1e-12


# ------------------------------------------------------------------------------------------------ chains


def cradle(impact: str, restitution: float = 1.0) -> ld.System:
    """Five balls of 1 kg in a row, four of them in touch, without gravity."""
    m = ld.Mechanism("cradle", impact=impact)
    for k in range(5):
        m.add_body(f"b{k}", ld.Inertia.sphere(mass=1.0, radius=0.05, at=(0.1 * k, 0, 0)))
        m.add_joint(f"x{k}", ld.Prismatic(axis=X), "ground", f"b{k}", at=(0.1 * k, 0, 0))
    for k in range(4):  # distances from a point 1 m behind, so that balls cannot change places
        points = {"point1": (0.1 * k - 1.0, 0, 0), "point2": (0.1 * k + 0.1, 0, 0)}
        stop = Stop(body1=f"b{k}", body2=f"b{k + 1}", **points, lower=1.1, restitution=restitution)
        m.add_contact(f"c{k}", stop)
    return m.compile()


@pytest.mark.jit_off
@pytest.mark.parametrize(
    ("impact", "after"), [("simultaneous", (-0.6, 0.4, 0.4, 0.4, 0.4)), ("sequential", (0.0, 0.0, 0.0, 0.0, 1.0))]
)
def test_newtons_cradle(impact, after):
    """Both rules are known (Moreau; one impact after the other); both conserve momentum and energy."""
    system = cradle(impact)
    start = system.state(q={"x0": -0.5}, v={"x0": 1.0})
    run = ld.simulate(system, start, (0, 0.7), progress=False)
    (hit,) = [e for e in run.events if e.kind == "impact"]
    assert hit.t == pytest.approx(0.5, abs=1e-14)
    np.testing.assert_allclose(hit.after.v, after, atol=1e-13)
    np.testing.assert_allclose(run.path.v[-1], after, atol=1e-13)
    assert abs(hit.energy_loss) < 1e-13


@pytest.mark.jit_off
def test_a_chain_is_hit_with_different_restitution():
    """Newton's law for each of the four gaps, of which the last is at rest, and momentum of each ball of 1 kg."""
    m = cradle("simultaneous").mechanism
    m.contacts["c1"] = m.contacts["c1"].model_copy(update={"restitution": 0.5})
    system, e = m.compile(), np.array([1.0, 0.5, 1.0, 1.0])
    before = np.array([2.0, 1.0, -1.0, -2.0, -2.0])
    run = ld.simulate(system, system.state(v=before), (0, 0.1), progress=False)
    hit = run.events[0]
    closing, opening = np.diff(before), np.diff(hit.after.v)
    np.testing.assert_allclose(opening, -e * closing, atol=ROUNDING)
    pushed = np.array([hit.impulse.multipliers[f"c{k}"] for k in range(4)])
    assert (pushed > 0.0).all()
    np.testing.assert_allclose(-np.diff([0.0, *pushed, 0.0]), hit.after.v - before, atol=ROUNDING)
    assert hit.energy_loss == pytest.approx(0.5 * float(pushed @ ((1 - e) * -closing)), abs=ROUNDING)
    assert hit.energy_loss > 0.0


@pytest.mark.jit_off
def test_independent_parts_may_have_different_restitution():
    """Three balls fall side by side from 1 m and hit the floor at the same time, with e = 0, 0.5, 1."""
    m = ld.Mechanism("three", gravity=DOWN)
    for k, e in enumerate((0.0, 0.5, 1.0)):
        m.add_body(f"b{k}", ld.Inertia.sphere(mass=1.0, radius=0.1))
        m.add_joint(f"z{k}", ld.Prismatic(axis=Z), "ground", f"b{k}", at=(k, 0, 0))
        m.add_contact(f"f{k}", Stop(joint=f"z{k}", lower=0.0, restitution=e))
    system, fall = m.compile(), np.sqrt(2 / G)
    run = ld.simulate(system, system.state(q={f"z{k}": 1.0 for k in range(3)}), (0, 1.9 * fall), progress=False)
    assert run.status == "finished"
    # z = e u t - g t^2/2 with u = sqrt(2 g), after 0.9 of the fall time; the second ball's flight takes 1.0 of it
    u, t = np.sqrt(2 * G), 0.9 * fall
    np.testing.assert_allclose(run.path.q[-1], [0.0, 0.5 * u * t - G * t * t / 2, u * t - G * t * t / 2], atol=1e-9)


@pytest.mark.jit_off
@pytest.mark.parametrize("restitution", [0.8, 1.0])
@pytest.mark.parametrize("ulps", [0, 1, 4])
def test_a_run_that_ends_at_an_impact_ends_with_the_rebound(restitution, ulps):
    """In the last step, of some 1e-16 s, the ball does not rise above rounding: it was once taken to be at rest."""
    system, end = ball(restitution), np.sqrt(2 / G)
    for _ in range(ulps):
        end = np.nextafter(end, np.inf)
    run = drop(system, float(end))
    assert not times(run, "contact")
    assert abs(run["z.speed"].values[-1]) == pytest.approx(restitution * np.sqrt(2 * G), rel=1e-12)
    assert sum(e.energy_loss for e in run.events) == pytest.approx(2.0 * G * (1 - restitution**2), abs=1e-11)


def test_a_shaken_table_does_work_and_its_impacts_lose_energy():
    """A ball of 3 kg on a table that is driven: each impact loses m (1 - e^2) r^2/2; the driver does the rest."""
    a, w, e = 0.05, 20.0, 0.7
    m = ld.Mechanism("shaken", gravity=DOWN)
    m.add_body("table", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_body("mass", ld.Inertia.sphere(mass=3.0, radius=0.1))
    m.add_joint("T", ld.Prismatic(axis=Z), "ground", "table", at=(0, 0, 0))
    m.add_joint("M", ld.Prismatic(axis=Z), "table", "mass", at=(0, 0, 0))
    m.add_driver("shake", "T", f"{a}*sin({w}*t)")
    m.add_contact("top", Stop(joint="M", lower=0.0, restitution=e))
    system = m.compile()
    run = ld.simulate(system, ld.assemble(system, q={"M": 0.1}), (0, 2.0), progress=False)
    hits = [x for x in run.events if x.kind == "impact"]
    assert len(hits) > 5
    place = system.speeds.index("M")
    for hit in hits:
        assert hit.energy_loss == pytest.approx(1.5 * (1 - e**2) * hit.state.v[place] ** 2, rel=1e-9)
    assert run.energy_error < 1e-6
    gained = run.path.work[-1].sum()  # the driver lifts and pushes: all that was lost, and what the ball has now
    energies = run.diagnostics.energy.sum(axis=1)
    assert gained == pytest.approx(energies[-1] - energies[0] + sum(x.energy_loss for x in run.events), rel=1e-6)


# --------------------------------------------------------------------------------------------- closed loops

LINKS = {"crank": 0.3, "coupler": 0.9, "rocker": 0.7}
FRAME = 1.0


def four_bar_angles(crank):
    """Angles of coupler and rocker of the open branch, in closed form; complex steps pass through."""
    x, y = LINKS["crank"] * np.cos(crank), LINKS["crank"] * np.sin(crank)
    dx, dy = FRAME - x, -y
    d2 = dx * dx + dy * dy
    d = np.sqrt(d2)
    cosine = (LINKS["coupler"] ** 2 + d2 - LINKS["rocker"] ** 2) / (2 * LINKS["coupler"] * d)
    coupler = np.arctan(dy / dx) + np.arctan(np.sqrt(1 - cosine * cosine) / cosine)
    px, py = x + LINKS["coupler"] * np.cos(coupler) - FRAME, y + LINKS["coupler"] * np.sin(coupler)
    return coupler, 2 * np.arctan(py / (np.sqrt(px * px + py * py) + px))


def four_bar(restitution: float, bound: float) -> ld.System:
    """Rods of 1 kg/m; the angle of the rocker against the horizontal may not exceed a bound."""
    m = ld.Mechanism("stopped", gravity=(0, -G, 0))
    _coupler, rocker = four_bar_angles(0.5)
    A, D = np.zeros(3), np.array([FRAME, 0, 0])
    B = LINKS["crank"] * np.array([np.cos(0.5), np.sin(0.5), 0])
    C = D + LINKS["rocker"] * np.array([np.cos(rocker), np.sin(rocker), 0])
    for name, start, end in (("crank", A, B), ("coupler", B, C), ("rocker", D, C)):
        m.add_body(name, ld.Inertia.rod(mass=LINKS[name], start=tuple(start), end=tuple(end)))
    for name, parent, child, at in (
        ("A", "ground", "crank", A),
        ("B", "crank", "coupler", B),
        ("C", "coupler", "rocker", C),
        ("D", "ground", "rocker", D),
    ):
        m.add_joint(name, ld.Revolute(axis=Z), parent, child, at=tuple(at))
    m.add_contact("stop", Stop(joint="D", upper=bound - float(rocker), restitution=restitution))
    return m.compile()


def reduced(crank: float) -> tuple[float, float]:
    """Reduced inertia at the crank, and the ratio of the rocker's speed to the crank's; by complex steps."""
    h = 1e-30
    angles = four_bar_angles(crank + 1j * h)
    coupler, rocker = (float(x.imag / h) for x in angles)
    m = LINKS
    turning = m["crank"] ** 3 / 3 + m["rocker"] ** 3 / 3 * rocker**2 + m["coupler"] ** 3 / 12 * coupler**2
    x = m["crank"] * np.cos(crank + 1j * h) + m["coupler"] / 2 * np.cos(angles[0])
    y = m["crank"] * np.sin(crank + 1j * h) + m["coupler"] / 2 * np.sin(angles[0])
    return turning + m["coupler"] * float(x.imag**2 + y.imag**2) / h**2, rocker


@pytest.mark.parametrize("restitution", [0.0, 0.4, 1.0])
def test_a_rocker_hits_a_stop(restitution):
    """Against the balance of momentum in the crank's angle: I dw = impulse * ratio, ratio * w+ = -e ratio * w-."""
    bound = float(four_bar_angles(0.9)[1])
    system = four_bar(restitution, bound)
    speed = 4.0 * np.sign(reduced(0.7)[1])
    start = ld.assemble(system, v={"A": speed})
    run = ld.simulate(system, start, (0, 1.0), progress=False, rtol=1e-10)
    hit = next(e for e in run.events if e.kind == "impact")
    place = system.speeds.index("A")
    inertia, ratio = reduced(hit.state.q[place] + 0.5)
    before, after = hit.state.v[place], hit.after.v[place]
    assert after == pytest.approx(-restitution * before, abs=1e-11)
    impulse = hit.impulse.multipliers["stop"]
    assert impulse * ratio == pytest.approx(inertia * (after - before), rel=1e-11)
    assert impulse < 0.0
    assert hit.energy_loss == pytest.approx(inertia / 2 * before**2 * (1 - restitution**2), rel=1e-11, abs=1e-11)
    _check_impulses_balance(system, hit)
    assert run["stop.gap"].min() > -1e-9
    assert run.energy_error < 1e-7


def _check_impulses_balance(system: ld.System, hit) -> None:
    """Newton and Euler for each link: the impulses of its joints and of the stop change its momentum."""
    before, after = (ld.tree.body_motion(system, x) for x in (hit.state, hit.after))
    total = {name: np.zeros(3) for name in LINKS}  # x, y, moment about the mass centre
    named = dict(zip(hit.impulse.joints, hit.impulse.wrench, strict=True))
    centres = {name: _centre(system, before, name) for name in LINKS}
    for name, joint in system.joints.items():
        parent, child = (system.mechanism.joints[name].parent, system.mechanism.joints[name].child)
        R = before.rotation[before.bodies.index(parent)]
        moment, force = R @ named[name][:3], R @ named[name][3:]
        at = before.position[joint.child] + before.rotation[joint.child] @ joint.M[0]
        for body, sign in ((child, 1.0), (parent, -1.0)):
            if body in total:
                arm = at - centres[body]
                total[body] += sign * np.array([force[0], force[1], moment[2] + np.cross(arm, force)[2]])
    total["rocker"][2] += hit.impulse.multipliers["stop"]
    for name, mass in LINKS.items():
        change = []
        for motion in (before, after):
            k = motion.bodies.index(name)
            w = motion.angular_velocity[k]
            v = motion.velocity[k] + np.cross(w, centres[name] - motion.position[k])
            change.append(np.array([mass * v[0], mass * v[1], mass**3 / 12 * w[2]]))
        np.testing.assert_allclose(total[name], change[1] - change[0], atol=ROUNDING)


def _centre(system: ld.System, motion, name: str) -> np.ndarray:
    """Mass centre of a rod: in its middle."""
    k = motion.bodies.index(name)
    ends = {"crank": "AB", "coupler": "BC", "rocker": "DC"}[name]
    points = []
    for label in ends:
        joint = system.joints[label]
        points.append(motion.position[joint.child] + motion.rotation[joint.child] @ joint.M[0])
    assert k >= 0
    return np.mean(points, axis=0)


# ------------------------------------------------------------------------------------------ the problem itself


@pytest.mark.jit_off
def test_complementarity_problems_against_all_active_sets():
    """500 problems of semidefinite matrices: the accelerations are those of the one active set that solves them."""
    rng = np.random.default_rng(4)
    for _ in range(500):
        n, rank = int(rng.integers(1, 7)), int(rng.integers(1, 7))
        B = rng.normal(size=(n, rank))
        B /= np.linalg.norm(B, axis=1)[:, None]
        A, q = B @ B.T, B @ rng.normal(size=rank)  # feasible: q + A z = 0 has a solution
        z = solve_lcp(A, q)
        assert z is not None
        assert (z >= 0.0).all()
        w = q + A @ z
        assert w.min() > -1e-10
        assert abs(w @ z) < 1e-9
        np.testing.assert_allclose(w, _by_enumeration(A, q), atol=1e-8)


def _by_enumeration(A, q):
    """Accelerations w of a problem by trying all active sets."""
    n = len(q)
    for code in range(2**n):
        on = [k for k in range(n) if code >> k & 1]
        z = np.zeros(n)
        z[on] = np.linalg.lstsq(A[np.ix_(on, on)], -q[on], rcond=None)[0]
        w = q + A @ z
        if z.min(initial=0.0) > -1e-9 and w.min() > -1e-9 and np.abs(w[on]).max(initial=0.0) < 1e-9:
            return w
    raise AssertionError("no active set solves the problem")


@pytest.mark.jit_off
def test_a_problem_without_a_solution_is_told():
    """One direction, two rows that contradict each other: w1 = -1 + z1 - z2 and w2 = -1 - z1 + z2."""
    assert solve_lcp(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([-1.0, -1.0])) is None


# ------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.jit_off
@pytest.mark.parametrize(
    ("stop", "message"),
    [
        ({"joint": "z"}, "no bound"),
        ({"joint": "z", "lower": 1.0, "upper": 0.5}, "no room between 1 and 0.5"),
        ({"joint": "z", "lower": 0.0, "restitution": 1.5}, "'restitution' is 1.5"),
        ({"joint": "y", "lower": 0.0}, "'y'"),
        ({"lower": 0.0}, "bounds one thing"),
        ({"joint": "z", "body1": "ball", "lower": 0.0}, "bounds one thing"),
        ({"body1": "ball", "body2": "ground", "point1": (0, 0, 0), "lower": 1.0}, "'point2' is missing"),
        (
            {"body1": "ball", "body2": "ball", "point1": (0, 0, 0), "point2": (1, 0, 0), "lower": 1.0},
            "relates body 'ball' to itself",
        ),
    ],
)
def test_mistakes_are_named(stop, message):
    m = ball(0.0).mechanism
    m.contacts["floor"] = Stop(**stop)
    with pytest.raises(ld.errors.ModelError, match=message):
        m.compile()


@pytest.mark.jit_off
def test_a_start_beyond_a_stop_is_refused():
    system = ball(0.5)
    with pytest.raises(ld.errors.LoopdynError, match=r"'floor': the start is beyond it, by 0\.25 m"):
        ld.simulate(system, system.state(q={"z": -0.25}), (0, 1), progress=False)


def test_a_driven_part_is_not_held_by_a_stop():
    m = ball(0.5).mechanism
    m.add_driver("press", "z", "1 - t")
    system = m.compile()
    run = ld.simulate(system, ld.assemble(system), (0, 2), progress=False)
    assert run.status == "failed"
    assert "a motion that is given" in run.message
    assert run.path.t[-1] <= 1.0


# ---------------------------------------------------------------------------------------------------- files


def test_stops_in_files_checkpoints_and_saved_runs(tmp_path, interrupt_at):
    m = ball(0.8).mechanism
    m.impact = "sequential"
    m.save(tmp_path / "ball.yaml")
    again = ld.load(tmp_path / "ball.yaml")
    assert again == m
    assert "restitution: 0.8" in (tmp_path / "ball.yaml").read_text()
    system = again.compile()
    start = system.state(q={"z": 1.0})
    whole = ld.simulate(system, start, (0, 6.0), progress=False)
    interrupt_at(t=2.0)
    part = ld.simulate(system, start, (0, 6.0), progress=lambda t: None, checkpoint=tmp_path / "part")
    assert part.status == "interrupted"
    rest = ld.simulate(system, start, (0, 6.0), progress=False, checkpoint=tmp_path / "part")
    np.testing.assert_array_equal(rest.path.q, whole.path.q)
    assert [e.t for e in rest.events] == [e.t for e in whole.events]
    whole.save(tmp_path / "run.nc")
    read = ld.load_run(tmp_path / "run.nc")
    np.testing.assert_array_equal(read["floor.force"], whole["floor.force"])
    np.testing.assert_array_equal(read["floor.impulse"], whole["floor.impulse"])


# --------------------------------------------------------------------------------------------- joint limits


@pytest.mark.jit_off
def test_limits_of_a_joint_as_a_stop():
    """A ball between limits of its slide: the same run as with the bounds written, without the events of limits."""
    m = ld.Mechanism("ball", gravity=DOWN, units={"length": "mm"})
    m.add_body("ball", ld.Inertia.sphere(mass=2.0, radius=100.0))
    limits = {"limits": (0.0, 1500.0), "at_limit": {"rebound": 0.8}}
    m.add_joint("z", ld.Prismatic(axis=Z), "ground", "ball", at=(0, 0, 0), **limits)
    m.add_contact("floor", Stop(joint="z"))
    system = m.compile()
    run = ld.simulate(system, system.state(q={"z": 1000.0}), (0, 6.0), progress=False)
    assert run.status == "finished"
    assert not times(run, "limit")
    assert times(run, "contact")[0] == pytest.approx(4.0637127689, abs=5e-11)


@pytest.mark.jit_off
def test_accelerations_and_equilibria_say_that_contacts_do_not_act_there():
    system = ball(0.5)
    with pytest.warns(ld.LoopdynWarning, match="floor is closed at this state"):
        assert ld.accelerations(system, system.state())[0] == pytest.approx(-G)


def test_steps_of_a_simulation_and_rollouts_are_those_of_runs():
    system, end = ball(0.8), 2.0
    run = drop(system, end, t_eval=[0.0, end])
    stepped = ld.Simulation(system, system.state(q={"z": 1.0}), step=0.01)
    for _ in range(200):
        stepped.step()
    # both are polynomials between impacts, which are located to rounding
    assert stepped.state.q[0] == pytest.approx(run.path.q[-1, 0], abs=1e-12)
    np.testing.assert_allclose([e.t for e in stepped.events], [e.t for e in run.events], atol=1e-12)
    samples = ld.rollout(system, states=[system.state(q={"z": 1.0})], t_span=(0, end), progress=False)
    assert samples["q"].values[0, -1, 0] == pytest.approx(run.path.q[-1, 0], abs=1e-12)


def lifted(force: str | float = 0.0) -> ld.System:
    """A weight of 2 kg on the floor, and a motor that lifts it."""
    m = ld.Mechanism("lifted", gravity=DOWN)
    m.add_body("weight", ld.Inertia.sphere(mass=2.0, radius=0.1))
    m.add_joint("z", ld.Prismatic(axis=Z), "ground", "weight", at=(0, 0, 0))
    m.add_motor("lift", "z", force=force)
    m.add_contact("floor", Stop(joint="z", lower=0.0))
    return m.compile()


def test_an_input_that_lifts_a_resting_part_lets_it_go_at_once():
    """30 N from 0.3 s on: z = (30/2 - g) t^2/2; it once stayed on the floor, which did not know of the input."""
    system = lifted()
    sim = ld.Simulation(system, system.state(), inputs=["lift"], step=0.01)
    for force in [10.0] * 30 + [30.0] * 10:
        sim.step([force])
    assert [e.kind for e in sim.events] == ["contact", "separation"]
    assert sim.events[1].t == pytest.approx(0.3, abs=1e-14)
    assert sim.state.q[0] == pytest.approx((15.0 - G) * 0.1**2 / 2, rel=1e-9)
    other = sim.copy()
    for force in [0.0] * 50:
        assert sim.step([force])
        assert other.step([force])
    assert sim.state.q[0] == 0.0  # it has fallen, and rests
    np.testing.assert_array_equal(other.state.q, sim.state.q)


def test_a_step_of_a_simulation_in_which_a_contact_closes_can_be_undone():
    """An event function fails in the step in which the ball lands: the step is undone, and can be made again."""
    system, failing = ball(0.0), [True]

    def fails(t, q, v):
        if failing[0] and t > 0.455:
            raise ValueError("once")
        return 1.0

    sim = ld.Simulation(system, system.state(q={"z": 1.0}), step=0.05, events=[fails])
    for _ in range(9):
        sim.step()
    with pytest.raises(ValueError, match="once"):
        sim.step()
    assert sim.t == pytest.approx(0.45)
    failing[0] = False
    for _ in range(3):
        sim.step()
    assert times(sim, "contact") == pytest.approx([np.sqrt(2 / G)], rel=1e-12)
    assert sim.state.q[0] == 0.0


@pytest.mark.parametrize("end", [0.8, 4.5])
def test_a_run_with_closed_contacts_resumes_bit_for_bit(tmp_path, interrupt_at, end):
    """A weight is pressed, lifted and dropped; interrupted while it rests, or while it flies."""
    system = lifted("40*sin(1.5*t)")
    whole = ld.simulate(system, system.state(), (0, 6.0), progress=False)
    assert {"contact", "separation", "impact"} <= {e.kind for e in whole.events}
    interrupt_at(t=end)
    part = ld.simulate(system, system.state(), (0, 6.0), progress=lambda t: None, checkpoint=tmp_path / "part")
    assert part.status == "interrupted"
    rest = ld.simulate(system, system.state(), (0, 6.0), progress=False, checkpoint=tmp_path / "part")
    np.testing.assert_array_equal(rest.path.q, whole.path.q)
    np.testing.assert_array_equal(rest["floor.force"], whole["floor.force"])
    assert [(e.kind, e.t) for e in rest.events] == [(e.kind, e.t) for e in whole.events]


# ----------------------------------------------------------------------------------------- redundant contacts


def test_a_table_drops_onto_four_feet_and_rests():
    """Four points that hold three freedoms: the weight is known, its distribution is marked as one of many."""
    m = ld.Mechanism("table", gravity=DOWN)
    m.add_body("top", ld.Inertia.box(mass=10.0, size=(1.0, 0.6, 0.1), at=(0, 0, 0.5)))
    m.add_joint("F", ld.Free(), "ground", "top", at=(0, 0, 0.5))
    feet = [(0.5, 0.3), (-0.5, 0.3), (-0.5, -0.3), (0.5, -0.3)]
    for k, (x, y) in enumerate(feet):
        foot = SphereOnPlane("ground", "top", through=(0, 0, 0), outward=Z, centre=(x, y, 0), restitution=0.5)
        m.add_contact(f"foot{k}", foot)
    system = m.compile()
    run = ld.simulate(system, system.state(q={"F.pz": 0.2}), (0, 2.0), t_eval=[0.0, 1.0, 2.0], progress=False)
    fall = np.sqrt(2 * 0.2 / G)
    np.testing.assert_allclose(times(run, "impact")[:3], fall * np.array([1.0, 2.0, 2.5]), rtol=1e-9)
    assert times(run, "contact") == pytest.approx([3 * fall] * 4, abs=1e-9)  # sqrt(2 h/g) (1 + e)/(1 - e)
    force = np.array([run[f"foot{k}.force"].values[-1] for k in range(4)])
    assert (force > -1e-9).all()
    assert force.sum() == pytest.approx(10.0 * G, rel=1e-12)
    np.testing.assert_allclose(force @ np.array(feet), 0.0, atol=1e-9)  # no moment about the mass centre
    assert run["foot0.force"].attrs["indeterminate"]
    assert run.energy_error < 1e-10


@pytest.mark.jit_off
def test_outputs_between_checks_are_checked_for_stops_that_were_passed():
    """The check itself, with outputs that are put in: 2e-6 m below the floor at the third of five."""
    from types import SimpleNamespace

    from loopdyn.run.contacts import Contacts

    system = ball(0.5)
    contacts, kept = Contacts(system, lambda: None), []
    contacts._open = [(0, None)]
    q = np.array([[1.0], [0.5], [-2e-6], [0.1], [0.2]])
    outputs = SimpleNamespace(checked=7, path=lambda start: SimpleNamespace(q=q), keep=kept.append)
    with pytest.raises(ld.LoopdynError, match="was passed unnoticed"):
        contacts.check_outputs(outputs)
    assert kept == [7 + 2]
    q[2] = -2e-10
    contacts.check_outputs(outputs)


@pytest.mark.jit_off
def test_analyses_without_contacts_name_those_that_are_closed_and_no_open_ones():
    system = ball(0.5)
    closed, open_ = system.state(), system.state(q={"z": 1.0})
    with pytest.warns(ld.LoopdynWarning, match="floor is closed"):
        ld.kinematics(system, closed)
    with pytest.warns(ld.LoopdynWarning, match="floor is closed .* goes on as if there were none"):
        ld.drive(system, "z", (0.5, -0.5, 5))
    with pytest.warns(ld.LoopdynWarning, match="floor is closed .* loads of the motors"):
        ld.inverse_dynamics(system, {"z": "0.5 - t"}, np.linspace(0, 1, 5))
    with pytest.warns(ld.LoopdynWarning, match="floor is closed .* solutions"):
        ld.inverse_kinematics(system, {"z": -0.5}, near=open_)
    with pytest.warns(ld.LoopdynWarning, match="floor is closed .* count as reached"):
        ld.workspace(system, "ball", inputs="z", over=(-0.5, 0.5, 5), near=open_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ld.linearize(system, open_)
        ld.kinematics(system, open_)
        ld.drive(system, "z", (1.5, 0.5, 5))
        ld.inverse_dynamics(system, {"z": "2 - t"}, np.linspace(0, 1, 5))
        ld.inverse_kinematics(system, {"z": 0.5}, near=open_)
        ld.workspace(system, "ball", inputs="z", over=(0.5, 1.5, 5), near=open_)


@pytest.mark.jit_off
def test_equilibria_and_sensitivities_beside_a_stop():
    """A rod of 2 kg and 1 m hangs at zero; the stop at 0.5 rad is passed on the way, or the one at -0.1 is not."""

    def rod(lower: float) -> ld.System:
        m = ld.Mechanism("rod", gravity=(0, -10, 0), parameters={"mass": 2.0})
        m.add_body("rod", ld.Inertia.rod(mass="mass", start=(0, 0, 0), end=(0, -1, 0)))
        m.add_joint("A", ld.Revolute(axis=Z), "ground", "rod", at=(0, 0, 0))
        m.add_contact("stop", Stop(joint="A", lower=lower))
        return m.compile()

    beyond, inside = rod(0.5), rod(-0.1)
    with pytest.warns(ld.LoopdynWarning, match="stop is closed .* held by it"):
        found = ld.equilibrium(beyond, beyond.state(q={"A": 1.0}))
    assert "closed contacts do not act here: stop" in found.note
    with pytest.warns(ld.LoopdynWarning, match="stop is closed .* derivatives"):
        ld.sensitivity(beyond, ["A"], "mass", state=beyond.state(q={"A": 0.5}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ld.equilibrium(inside, inside.state(q={"A": 1.0})).note == ""
        ld.sensitivity(inside, ["A"], "mass", state=inside.state(q={"A": 0.5}))
    with pytest.raises(ld.LoopdynError, match="through which changes of a run are not"):
        ld.sensitivity(inside, ["end(A)"], "mass", state=inside.state(q={"A": 0.5}), t_span=(0, 1))


@pytest.mark.parametrize("formulation", ["rcr", "partition"])
def test_other_formulations_give_the_same_impacts(formulation):
    """A four-bar's rocker bounces on a stop: the times of the default method, to the tolerance of the runs."""
    m = ld.library.four_bar()
    m.add_contact("stop", Stop(joint="A", lower=-0.1, upper=0.1, restitution=0.5))
    system = m.compile()
    start = ld.assemble(system, v={"A": 2.0})
    runs = [
        ld.simulate(system, start, (0, 0.4), formulation=f, progress=False, rtol=1e-10) for f in ("auto", formulation)
    ]
    assert [run.status for run in runs] == ["finished", "finished"]
    expected, found = (times(run, "impact") for run in runs)
    assert len(found) >= 1
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_a_part_rests_while_another_one_passes_singular_poses():
    """Two square windows fall through the pose in line by momentum steps; a weight of 2 kg rests on its stop."""
    m = ld.library.n_four_bar(2)
    alone = ld.library.n_four_bar(2).compile()
    m.add_body("weight", ld.Inertia.sphere(mass=2.0, radius=0.1))
    m.add_joint("z", ld.Prismatic(axis=(0, 1, 0)), "ground", "weight", at=(5, 0, 0))
    m.add_contact("floor", Stop(joint="z", lower=0.0))
    system = m.compile()
    run, free = (ld.simulate(s, ld.assemble(s), (0, 2.5), progress=False) for s in (system, alone))
    passages = [[e.t for e in x.events if e.kind == "singular passage"] for x in (run, free)]
    assert run.status == "finished"
    assert len(passages[0]) >= 2
    assert [e.kind for e in run.events if e.name.startswith("floor")] == ["contact"]
    assert np.abs(run["floor.gap"].values).max() <= ROUNDING
    force = run["floor.force"].values  # NaN inside the passages, as all reactions there
    weight = 2.0 * abs(system.mechanism.resolver().vector(m.gravity, "acceleration", "m", ())[1])
    np.testing.assert_allclose(force[np.isfinite(force)], weight, rtol=1e-9)
    assert np.isfinite(force).mean() > 0.5
    k = [x.index("A0") for x in (system.coordinates, alone.coordinates)]
    # momentum steps to 1e-8 of a chaotic mechanism, of other steps
    np.testing.assert_allclose(run.path.q[-1, k[0]], free.path.q[-1, k[1]], atol=1e-3)


def test_contacts_of_a_system_are_those_of_its_compilation():
    """A floor that is added later, or moved, is none of a system that is there already."""
    m = ld.Mechanism("ball", gravity=(0, 0, -9.81))
    ball = m.add_body("ball", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_joint("z", ld.Prismatic(axis=(0, 0, 1)), m.ground, ball, at=(0, 0, 0))
    free = m.compile()
    m.add_contact("floor", ld.contacts.Stop(joint="z", lower=-1.0))
    stopped = m.compile()
    m.contacts["floor"] = ld.contacts.Stop(joint="z", lower=-0.5)
    for system, expected in ((free, -0.5 * 9.81), (stopped, -1.0)):
        run = ld.simulate(system, system.state(), (0.0, 1.0), progress=False)
        assert run["z"].values[-1] == pytest.approx(expected, abs=1e-8)  # closed forms


@pytest.mark.parametrize("unrelated", [False, True])
@pytest.mark.parametrize(
    ("law", "force"),
    [
        ("3*exp(-((t-1.37)/0.02)**2)", lambda t: 3.0 * np.exp(-(((t - 1.37) / 0.02) ** 2))),
        ("1.97*sin(40*t)", lambda t: 1.97 * np.sin(40.0 * t)),
        ("1.5*t*sin(90*t)", lambda t: 1.5 * t * np.sin(90.0 * t)),
    ],
    ids=["pulse", "just above the weight", "growing"],
)
def test_a_law_of_time_lifts_a_part_although_nothing_moves(law, force, unrelated):
    """Nothing limits the steps of a mechanism at rest: forces are looked at from output to output."""
    m = ld.Mechanism("part", gravity=(0, 0, -9.81))
    m.add_body("b", ld.Inertia.sphere(mass=0.2, radius=0.01))
    m.add_joint("z", ld.Prismatic(axis=(0, 0, 1)), m.ground, "b", at=(0, 0, 0))
    m.add_contact("s", ld.contacts.Stop(joint="z", lower=0.0))
    m.add_motor("M", "z", force=law)
    if unrelated:
        m.add_body("p", ld.Inertia.rod(1.0, (1, 0, 0), (1.3, 0, 0)))
        m.add_joint("P", ld.Revolute(axis=(0, 1, 0)), m.ground, "p", at=(1, 0, 0))
    t = np.linspace(0.0, 3.0, 300_001)
    k = int(np.argmax(force(t) > 0.2 * 9.81))
    lift = brentq(lambda x: force(x) - 0.2 * 9.81, t[k - 1], t[k])
    run = ld.simulate(m.compile(), t_span=(0, 3), progress=False)
    assert next(e.t for e in run.events if e.kind == "separation") == pytest.approx(lift, abs=1e-9)
    assert run["s.force"].min() >= 0.0
