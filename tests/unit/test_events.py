"""Events against closed forms: pendulum, thrown and bouncing masses."""

import numba
import numpy as np
import pytest

import loopdyn as ld
from loopdyn.integrators.stepper import Stepper

G = 9.81
PERIOD = 2.367841947576237449303295  # s, of the pendulum released from the horizontal (elliptic functions)


def slide(limits=None, restitution_mass: float = 2.0) -> ld.System:
    """A mass on a vertical slide, 1 m above its lower limit."""
    m = ld.Mechanism("slide", gravity=(0, 0, -G))
    m.add_body("mass", ld.Inertia.sphere(mass=restitution_mass, radius=0.1, at=(0, 0, 0)))
    m.add_joint("s", ld.Prismatic(axis=(0, 0, 1)), m.ground, "mass", at=(0, 0, 0), limits=limits)
    return m.compile()


def test_a_crossing_is_located_to_rounding_on_a_parabola():
    """The dense output is exact for a polynomial of degree two: only rounding is left."""
    system = slide()
    events = [ld.events.Crossing(lambda t, q, v: q[0] + 1.0, "ground", direction=-1)]
    run = ld.simulate(system, system.state(), (0, 1), events=events, progress=False)
    assert run.status == "finished"
    assert [e.name for e in run.events] == ["ground"]
    assert run.events[0].t == pytest.approx(np.sqrt(2.0 / G), abs=1e-13)
    assert run.events[0].state.v[0] == pytest.approx(-np.sqrt(2.0 * G), abs=1e-12)


def test_both_crossings_inside_one_step_are_seen():
    """A mass thrown up passes a height that it reaches for 0.02 s only; the steps are much longer."""
    system = slide()
    top = 0.5 * 25.0 / G
    height = top - 0.5 * G * 0.01**2
    events = [ld.events.Crossing(lambda t, q, v: q[0] - height, "height")]
    run = ld.simulate(system, system.state(v=[5.0]), (0, 2.5), events=events, integrator=ld.integrators.RK4(step=0.05),
                      progress=False)  # fmt: skip
    expected = [5.0 / G - 0.01, 5.0 / G + 0.01]
    assert [e.t for e in run.events] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("integrator", [ld.integrators.RK4(step=0.05), ld.integrators.DOP853()])
@pytest.mark.parametrize("seconds", [1e-2, 1e-5, 1e-7])
def test_two_crossings_are_seen_however_near_they_are(integrator, seconds):
    """The mass reaches a height for a time that is up to a millionth of a step."""
    system = slide()
    top = 5.0 / G
    events = [ld.events.Crossing(f"x - {0.5 * 25.0 / G - 0.5 * G * (seconds / 2) ** 2!r}", coordinates={"x": "s"})]
    run = ld.simulate(system, system.state(v=[5.0]), (0, 2.5), events=events, integrator=integrator, progress=False)
    assert len(run.events) == 2
    # rounding of the height, 1e-16 m, moves the crossings by 2e-17/(G*seconds/2)
    tolerance = 1e-11 + 1e-16 / seconds
    assert [e.t for e in run.events] == pytest.approx([top - seconds / 2, top + seconds / 2], abs=tolerance)


@pytest.mark.parametrize("as_formula", [True, False])
def test_pairs_of_crossings_are_seen_wherever_they_lie_in_a_step(as_formula):
    """(t - a)(t - b) with b just behind a, also at the ends of steps, on both sides and across them."""
    m = ld.Mechanism("wheel")
    m.add_body("wheel", ld.Inertia.cylinder(mass=1.0, radius=1.0, length=0.1, axis=(0, 0, 1), at=(0, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "wheel", at=(0, 0, 0))
    system = m.compile()
    rng = np.random.default_rng(5)
    near = 1e-6
    firsts = [*rng.uniform(0.05, 0.9, 12), 0.1, 0.2 - near, 0.3 - near / 2, 0.4 + near / 7, 0.5 - 3 * near]
    events = [
        ld.events.Crossing(
            f"(t - {a!r})*(t - {a + near!r})" if as_formula else lambda t, q, v, a=a: (t - a) * (t - a - near), f"{k}"
        )
        for k, a in enumerate(map(float, firsts))
    ]
    run = ld.simulate(
        system, system.state(v=[1.0]), (0, 1), events=events, integrator=ld.integrators.RK4(step=0.1), progress=False
    )
    for k, a in enumerate(firsts):
        assert [e.t for e in run.events if e.name == f"{k}"] == pytest.approx([a, a + near], abs=1e-9), k
    assert [e.t for e in run.events] == sorted(e.t for e in run.events)


def lowest(t, q, v):
    return q[0] - np.pi / 2


@pytest.mark.parametrize(
    "event",
    [
        lowest,
        numba.njit(lowest),
        ld.events.Crossing("a - pi/2", coordinates={"a": "A"}),
        ld.events.Crossing("g*sin(a)**2*cos(a)".replace("g", "9.81"), coordinates={"a": "A"}),
    ],
    ids=["python", "jitted", "formula", "formula that touches zero elsewhere"],
)
def test_a_pendulum_passes_the_lowest_point_every_half_period(event):
    system = ld.library.pendulum().compile()
    run = ld.simulate(system, system.state(), (0, 5), events=[event], rtol=1e-11, progress=False)
    expected = PERIOD * (0.25 + 0.5 * np.arange(4))
    found = [e.t for e in run.events if abs(e.state.q[0] - np.pi / 2) < 0.1]
    # 1e-11 a step grows to some 1e-10 within five seconds
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("compiled", [True, False])
def test_formulas_and_jitted_functions_do_not_leave_the_compiled_run(monkeypatch, compiled):
    """Python is entered for each crossing and a few times to look at the progress, not for each of the 2000 steps."""
    calls = {"n": 0}
    real = Stepper.advance

    def counted(self, out, limit):
        calls["n"] += 1
        return real(self, out, limit)

    monkeypatch.setattr(Stepper, "advance", counted)
    system = ld.library.pendulum().compile()
    functions = [numba.njit(lowest), ld.events.Crossing("w", coordinates={}, speeds={"w": "A"})]
    events = functions if compiled else [*functions, lowest]
    run = ld.simulate(
        system,
        system.state(),
        (0, 2),
        t_eval=[2.0],
        events=events,
        integrator=ld.integrators.RK4(step=1e-3),
        progress=False,
    )
    assert run.statistics.steps == 2000
    lowest_at = [0.25 * PERIOD, 0.75 * PERIOD]
    assert [e.t for e in run.events if e.name == "lowest"][:: len(events) - 1] == pytest.approx(lowest_at, abs=1e-9)
    assert [e.t for e in run.events if e.name == "crossing"] == pytest.approx([0.5 * PERIOD], abs=1e-9)
    assert (calls["n"] < 100) == compiled


def test_crossings_at_one_time_are_all_found():
    """Two masses fall side by side and reach their stops together, with and without a rebound."""
    m = ld.Mechanism("two", gravity=(0, 0, -G))
    for k in (1, 2):
        m.add_body(f"mass{k}", ld.Inertia.sphere(mass=1.0, radius=0.1, at=(k, 0, 0)))
        m.add_joint(f"s{k}", ld.Prismatic(axis=(0, 0, 1)), m.ground, f"mass{k}", at=(k, 0, 0), limits=(-1.0, 5.0))
    system = m.compile()
    passing = [ld.events.Crossing("x + 0.5", f"half {k}", coordinates={"x": f"s{k}"}) for k in (1, 2)]
    events = [ld.events.Limits(restitution=0.8), *passing]
    run = ld.simulate(system, system.state(), (0, 0.8), events=events, progress=False)
    half, fall = np.sqrt(1.0 / G), np.sqrt(2.0 / G)
    # back through the half height, and down again: the rebound reaches 0.64 m
    up = fall + 0.8 * fall - np.sqrt(2.0 * 0.14 / G)
    down = fall + 0.8 * fall + np.sqrt(2.0 * 0.14 / G)
    expected = [half, half, fall, fall] + [t for t in (up, up, down, down) if t < 0.8]
    assert [e.t for e in run.events] == pytest.approx(expected, abs=1e-9)
    assert run.path.q.min() > -1.0 - 1e-9


@pytest.mark.parametrize(("direction", "first"), [(1, 0.25), (-1, 0.75)])
def test_the_direction_of_a_crossing_counts(direction, first):
    system = ld.library.pendulum().compile()
    events = [ld.events.Crossing(lambda t, q, v: q[0] - np.pi / 2, direction=direction)]
    run = ld.simulate(system, system.state(), (0, 2.3), events=events, rtol=1e-10, progress=False)
    assert [e.t for e in run.events] == pytest.approx([PERIOD * first], abs=1e-8)


def test_a_stop_ends_the_run_at_its_time():
    system = ld.library.pendulum().compile()
    events = [ld.events.Crossing(lambda t, q, v: q[0] - 1.0, "one radian", stop=True)]
    run = ld.simulate(system, system.state(), (0, 5), events=events, progress=False)
    assert run.status == "stopped"
    assert "one radian" in run.message
    assert run.path.q[-1, 0] == pytest.approx(1.0, abs=1e-12)
    assert run.path.t[-1] == run.events[0].t
    assert np.all(np.diff(run.path.t) > 0.0)
    # energy: v^2 = 2 g sin(angle) of the rod of 1 m
    assert run.path.v[-1, 0] == pytest.approx(np.sqrt(2.0 * G * np.sin(1.0)), rel=1e-7)


@pytest.mark.parametrize("integrator", [ld.integrators.DOP853(), ld.integrators.RK4(step=0.003)])
def test_bounces_follow_the_geometric_series(integrator):
    """From rest 1 m above the stop: impacts at t1 (1 + 2 e + 2 e^2 + ...), speeds sqrt(2 g h) e^n."""
    e = 0.8
    system = slide(limits=(-1.0, 5.0))
    run = ld.simulate(
        system, system.state(), (0, 3), events=[ld.events.Limits(restitution=e)], integrator=integrator, progress=False
    )
    first = np.sqrt(2.0 / G)
    expected = [first]
    while len(expected) < 5:
        expected.append(expected[-1] + 2.0 * first * e ** len(expected))
    assert [x.t for x in run.events[:5]] == pytest.approx(expected, abs=1e-10)
    # the energy of each impact is booked, so the balance holds through all of them
    assert run.events[0].energy_loss == pytest.approx(2.0 * G * (1.0 - e**2), rel=1e-11)
    assert np.abs(run.energy_balance).max() < 1e-9
    assert run.path.q.min() > -1.0 - 1e-12


def test_a_rebound_that_dies_out_ends_the_run_at_rest():
    """The series of bounces converges at t1 (1 + e)/(1 - e)."""
    e = 0.5
    system = slide(limits=(-1.0, 5.0))
    run = ld.simulate(system, system.state(), (0, 3), events=[ld.events.Limits(restitution=e)], progress=False)
    assert run.status == "stopped"
    assert "rest" in run.message
    # the last bounces, below 1 mm/s, are left out
    assert run.path.t[-1] == pytest.approx(np.sqrt(2.0 / G) * (1 + e) / (1 - e), abs=1e-3)


def test_without_restitution_the_run_stops_at_the_limit():
    system = slide(limits=(-1.0, 5.0))
    run = ld.simulate(system, system.state(), (0, 3), events=[ld.events.Limits()], progress=False)
    assert run.status == "stopped"
    assert run.path.q[-1, 0] == pytest.approx(-1.0, abs=1e-12)


def test_an_impact_keeps_the_loop_closed_and_loses_energy():
    m = ld.library.four_bar()
    m.joints["A"] = m.joints["A"].model_copy(update={"limits": (-10.0, 0.5)})
    system = m.compile()
    state = ld.assemble(system)
    run = ld.simulate(system, state, (0, 0.2), events=[ld.events.Limits(restitution=0.5)], rtol=1e-10, progress=False)
    event = run.events[0]
    before, after = event.state, event.after
    k = system.speeds.index("A")
    assert after.v[k] == pytest.approx(-0.5 * before.v[k], rel=1e-12)
    assert run.largest_residual < 1e-10
    # one degree of freedom: all speeds scale, and the energy with their square
    kinetic = ld.tree.energy(system, before).kinetic
    assert event.energy_loss == pytest.approx(0.75 * kinetic, rel=1e-6)
    assert run.energy_error < 1e-8


def test_time_events_act_at_their_time():
    """A mass at rest is given 3 m/s at 0.25 s."""
    m = ld.Mechanism("slide", gravity=(0, 0, 0))
    m.add_body("mass", ld.Inertia.sphere(mass=1.0, radius=0.1, at=(0, 0, 0)))
    m.add_joint("s", ld.Prismatic(axis=(0, 0, 1)), m.ground, "mass", at=(0, 0, 0))
    system = m.compile()
    kick = ld.events.At(0.25, "kick", action=lambda s: ld.State(s.t, s.q, s.v + 3.0))
    run = ld.simulate(system, system.state(), (0, 1), events=[kick, ld.events.At(0.5, "look")], progress=False)
    assert [e.name for e in run.events] == ["kick", "look"]
    assert run.events[0].energy_loss == pytest.approx(-4.5, abs=1e-14)
    assert run.path.q[-1, 0] == pytest.approx(2.25, abs=1e-13)


def test_a_motor_that_switches_is_met_exactly_by_a_time_event():
    """Constant torque until 0.3 s, then none: quadratic, then linear motion."""
    m = ld.Mechanism("wheel")
    m.add_body("wheel", ld.Inertia.cylinder(mass=1.0, radius=1.0, length=0.1, axis=(0, 0, 1), at=(0, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "wheel", at=(0, 0, 0))
    m.add_motor("drive", "A", torque="2*step(0.3 - t)")
    system = m.compile()
    run = ld.simulate(system, system.state(), (0, 1), events=[ld.events.At(0.3, "off")], progress=False)
    alpha = 2.0 / 0.5
    assert run.path.q[-1, 0] == pytest.approx(0.5 * alpha * 0.09 + alpha * 0.3 * 0.7, abs=1e-12)
    # work of the motor: torque times angle
    assert run.path.work[-1, 0] == pytest.approx(2.0 * 0.5 * alpha * 0.09, abs=1e-12)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (ld.events.At(2.0), "outside of t_span"),
        (ld.events.Limits(), "no joint of the model has limits"),
        (ld.events.Limits(joints=["B"]), "has no limits"),
        ("now", "Give a list, each entry a Crossing or an At or a Limits or a function"),
        (ld.events.Crossing(lambda t, q, v: np.nan, "bad"), "'bad' is NaN"),
        (ld.events.Crossing("sqrt(-1 - t)", "bad"), "'bad' is NaN"),
        (ld.events.Crossing("x", "bad", coordinates={"x": "S"}), "'x': there is no .*'S'.* Known: s"),
        (ld.events.Crossing("x + y", "bad", coordinates={"x": "s"}), "unknown name 'y'"),
    ],
)
def test_wrong_events_are_refused_in_words(event, words):
    system = slide()
    with pytest.raises(ld.LoopdynError, match=words):
        ld.simulate(system, system.state(), (0, 1), events=[event], progress=False).raise_if_failed()
