"""Derivatives of whole runs by parameters: closed forms, and Richardson differences of whole simulations."""

from itertools import pairwise

import numpy as np
import pytest

import loopdyn as ld

G = 9.81


def five_points(f, x, h):
    """Richardson difference; its error is the fourth power of h/x."""
    up, down, up2, down2 = (f(x + k * h) for k in (1, -1, 2, -2))
    return (8 * (up - down) - (up2 - down2)) / (12 * h)


def ball():
    """A ball that falls from the height h and rebounds at the ground."""
    m = ld.Mechanism("ball", gravity=(0, 0, -G), parameters={"h": 1.0, "restitution": 0.8})
    body = m.add_body("ball", ld.Inertia.sphere(mass=2.0, radius=0.1))
    slide = ld.Prismatic(axis=(0, 0, 1), limits=(0, 10), at_limit={"rebound": "restitution"})
    m.add_joint("z", slide, m.ground, body, at=(0, 0, 0))
    m.start.q["z"] = "h"
    return m.compile()


def test_ball_that_rebounds_in_closed_form():
    """With T = sqrt(2 h/g): y = e g T s - g s^2/2, s = t - T, so dy/dT = e g (s - T) + g s, dT/dh = 1/(g T)."""
    found = ld.sensitivity(ball(), ["z", "z.speed", "time(z at its lower limit)", "integral(z)"], t_span=(0, 0.8))
    T, e = np.sqrt(2 / G), 0.8
    s = 0.8 - T
    by_h = (e * G * (s - T) + G * s) / (G * T)
    assert (by_h, G * T * s) == pytest.approx((0.5892017810, 1.5435575345), abs=1e-9)  # the published numbers
    expected = {
        ("z", "h"): by_h,
        ("z", "restitution"): G * T * s,
        ("z.speed", "h"): (e + 1) / T,
        ("z.speed", "restitution"): G * T,
        ("time(z at its lower limit)", "h"): 1 / (G * T),
        ("time(z at its lower limit)", "restitution"): 0.0,
        # integral: h T - g T^3/6 + e g T s^2/2 - g s^3/6
        ("integral(z)", "h"): T + (1 - G * T**2 / 2 + e * G * s**2 / 2 - e * G * T * s + G * s**2 / 2) / (G * T),
        ("integral(z)", "restitution"): G * T * s**2 / 2,
    }
    for key, value in expected.items():  # polynomials are integrated exactly; floats are differences of 1e-10
        assert found[key] == pytest.approx(value, abs=1e-9), key
    stages, p = found.cost["states"], 2
    # one complex evaluation is worth two real ones
    assert found.cost["real"] + 2 * found.cost["complex"] <= 4 * (p + 1) * 1.25 * stages


def test_period_of_a_pendulum_in_closed_form():
    """The time from rest to the lowest point is K(sin(A/2)) sqrt(L/g): by L it grows by half of it per L."""
    m = ld.library.pendulum()
    system = m.compile()
    from scipy.special import ellipk

    amplitude = 1.0
    state = system.state(q={"A": np.pi / 2 - amplitude})
    lowest = ld.events.Crossing("A - pi/2", "lowest", stop=True)
    found = ld.sensitivity(system, ["time(lowest)", "A.speed"], state=state, t_span=(0, 2), events=[lowest])
    quarter = ellipk(np.sin(amplitude / 2) ** 2) * np.sqrt(1 / G)
    speed = np.sqrt(2 * G * (1 - np.cos(amplitude)))
    assert found.value("time(lowest)") == pytest.approx(quarter, abs=1e-10)
    assert found["time(lowest)", "length"] == pytest.approx(quarter / 2, abs=1e-9)
    assert found["time(lowest)", "g"] == pytest.approx(-quarter / 2 / G, abs=1e-9)
    assert found["time(lowest)", "mass"] == pytest.approx(0.0, abs=1e-9)
    assert found["A.speed", "length"] == pytest.approx(-speed / 2, abs=1e-8)  # v = sqrt(2 g (1 - cos)/L)


def refined(y, t):
    """Largest value of samples, by the polynomial of sixth degree through those around it."""
    k = int(np.clip(np.argmax(y), 3, len(y) - 4))
    if np.argmax(y) in (0, len(y) - 1):
        return y[np.argmax(y)]
    x = (t[k - 3 : k + 4] - t[k]) / (t[1] - t[0])
    p = np.polynomial.Polynomial.fit(x, y[k - 3 : k + 4], 6)
    roots = p.deriv().roots()
    inside = roots[np.abs(roots.imag) < 1e-9].real
    return max(p(inside[np.abs(inside) < 1.5]), default=y[k])


def check_run(build, parameters, span, step=1e-3, event=True, tolerance=1e-7, formulation="auto", switched=False):
    """Five functionals of a run, reversed at an event half-way, against differences of whole simulations."""
    from scipy.integrate import simpson

    system = build().compile()
    start = ld.assemble(system)
    held = ld.sensitivity(system, "t", parameters[0], state=start).held
    tree = [label for label in held if label in system.coordinates]
    still = max(abs(start.v), default=0.0) == 0.0
    speeds = {x: start[f"{x}.speed"] if f"{x}.speed" in system.labels else start[x] for x in held}
    if still:
        speeds = {x: 0.3 for x in held}
    given = {x: start[x] for x in tree}
    state = ld.assemble(system, given, speeds, near=start)
    label = tree[0] if tree else system.coordinates[0]
    events = []
    if event:
        plain = ld.simulate(system, state, (0, span), progress=False, rtol=1e-10)
        level = plain[label].values
        k = int(0.45 * len(level))
        direction = 1 if level[k + 1] > level[k - 1] else -1

        def back(s):
            return ld.State(s.t, s.q, -0.7 * s.v)

        bound = float(level[k])
        formula = f"x - ({bound!r})"
        events = [
            ld.events.Crossing(formula, "turned back", direction, action=back, coordinates={"x": label}),
        ]
    last = [x for x in system.coordinates if x in system.speeds][-1]
    of = [last, f"{last}.speed", f"rms({last}.speed)", f"integral({label})", f"peak({label})"]
    if event:
        of.append("time(turned back)")
    found = ld.sensitivity(
        system, of, parameters, state=state, hold=held, t_span=(0, span), events=events, formulation=formulation
    )

    if switched:
        run = ld.simulate(system, state, (0, span), events=events, progress=False, formulation=formulation)
        assert {"coordinate switch", "crossing"} <= {e.kind for e in run.events}

    def whole(name, x):
        other = system.with_parameters(**{name: x})
        first = ld.assemble(other, given, speeds, near=state)
        run = ld.simulate(other, first, (0, span), events=events, progress=False, rtol=1e-12, formulation=formulation)
        assert run.status == "finished", run.message
        cuts = [0.0, *(e.t for e in run.events if e.name == "turned back"), span]
        total, square, peaks = 0.0, 0.0, []
        for k, (a, b) in enumerate(pairwise(cuts)):
            begin = first if k == 0 else next(e.after for e in run.events if e.name == "turned back" and e.t == a)
            part = ld.simulate(other, begin, (a, b), t_eval=np.linspace(a, b, 801), progress=False, rtol=1e-12)
            v, y = part[f"{last}.speed"].values, part[label].values
            square += simpson(v**2, x=part.path.t)
            total += simpson(y, x=part.path.t)
            peaks.append(refined(y, part.path.t))
        values = [run[last].values[-1], run[f"{last}.speed"].values[-1], np.sqrt(square / span), total, max(peaks)]
        return np.array(values + cuts[1:-1][:1])

    for j, name in enumerate(parameters):
        p = system.mechanism.parameters[name]
        expected = five_points(lambda x, n=name: whole(n, x), p, step * abs(p))
        size = np.maximum(np.abs(expected) * abs(p), np.abs(found.values))
        error = np.abs(found.derivatives[:, j] - expected) * abs(p) / np.maximum(size, 1e-2)
        assert error.max() < tolerance, (name, of, error, found.derivatives[:, j], expected)
    return found


def numbers(m, count=2):
    """Parameters that are numbers, and not zero."""
    return [name for name, x in m.parameters.items() if not isinstance(x, str) and x][:count]


SPANS = {"andrews": 0.03, "flyball": 5e-4}  # fast, and stiff
# Steps of the differences as fractions: smaller where the fourth power of 1e-3 is too large, larger against rounding.
STEPS = {"flyball": 1e-5, "peaucellier": 1e-4, "delta_robot": 1e-4, "stewart_6ups": 5e-3}


def test_run_of_a_slider_crank_against_differences():
    """With an event half-way that reverses the motion."""
    check_run(ld.library.slider_crank, ["crank"], 0.4)


def test_switch_of_independent_coordinates_is_no_event():
    """A five-bar by `partition`, which exchanges an independent speed during the run, and turned back by an event."""
    system = ld.library.five_bar().compile()
    speeds = {"A": 6.0, "E": -3.0}
    start = {"A": 0.0, "E": 0.0}
    state = ld.assemble(system, start, speeds)
    method = ld.Partition(candidates=["A", "B", "E"])

    def back(s):
        return ld.State(s.t, s.q, -0.5 * s.v)

    turn = ld.events.Crossing("a - 1.2", "turned back", -1, action=back, coordinates={"a": "A"})
    options = {"t_span": (0, 0.95), "formulation": method, "events": [turn]}
    run = ld.simulate(system, state, progress=False, **options)
    assert {"coordinate switch", "crossing"} <= {e.kind for e in run.events}
    found = ld.sensitivity(system, ["A", "E", "A.speed"], "crank1", state=state, hold=["A", "E"], **options)
    p = system.mechanism.parameters["crank1"]

    def whole(x):
        other = system.with_parameters(crank1=x)
        first = ld.assemble(other, start, speeds, near=state)
        last = ld.simulate(other, first, rtol=1e-12, progress=False, **options)
        return np.array([last[name].values[-1] for name in ("A", "E", "A.speed")])

    expected = five_points(whole, p, 1e-4 * p)
    assert found.derivatives[:, 0] == pytest.approx(expected, rel=1e-7, abs=1e-7)


def test_breakpoints_of_laws_move_with_a_parameter():
    """A trapezoidal motion of a shoulder in the time T, whose acceleration jumps, moves a free elbow."""
    m = ld.Mechanism("arm", gravity=(0, -G, 0), parameters={"T": 0.4, "length": 1.0})
    upper = m.add_body("upper", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=("length", 0, 0)))
    lower = m.add_body("lower", ld.Inertia.rod(mass=1.0, start=("length", 0, 0), end=("2*length", 0, 0)))
    z = ld.Revolute(axis=(0, 0, 1))
    m.add_joint("A", z, m.ground, upper, at=(0, 0, 0))
    m.add_joint("B", z, upper, lower, at=("length", 0, 0))
    m.add_driver("d", "A", ld.profiles.Trapezoid(distance=1.0, time="T", dwell_before=0.1))
    system = m.compile()
    rest = {"B": 0.0}
    found = ld.sensitivity(system, ["B", "B.speed"], state=ld.assemble(system, rest, rest), hold=["B"], t_span=(0, 0.8))

    def whole(name, x):
        other = system.with_parameters(**{name: x})
        run = ld.simulate(other, ld.assemble(other, rest, rest), (0, 0.8), rtol=1e-12, progress=False)
        return np.array([run["B"].values[-1], run["B.speed"].values[-1]])

    for j, (name, p) in enumerate({"T": 0.4, "length": 1.0}.items()):
        expected = five_points(lambda x, n=name: whole(n, x), p, 1e-3 * p)
        assert found.derivatives[:, j] == pytest.approx(expected, rel=1e-7)


def test_refusals_of_runs():
    system = ball()
    with pytest.raises(ld.LoopdynError, match="no event 'floor' happened"):
        ld.sensitivity(system, "time(floor)", "h", t_span=(0, 0.8))
    with pytest.raises(ld.LoopdynError, match="t_span=\\(0, 5\\)"):
        ld.sensitivity(system, "z", "h", events=[ld.events.At(0.5, "switch")])


def test_equal_peaks_and_grazing_events_are_refused():
    """An undamped oscillator of one unit of frequency: its peaks are equal, and a level at its peak is grazed."""
    m = ld.Mechanism("oscillator", gravity=(0, 0, 0), parameters={"k": 1.0})
    body = m.add_body("body", ld.Inertia.sphere(mass=1.0, radius=0.1))
    m.add_joint("x", ld.Prismatic(axis=(1, 0, 0)), m.ground, body, at=(0, 0, 0))
    m.add_force("spring", ld.forces.JointSpring(joint="x", stiffness="k"))
    system = m.compile()
    state = system.state(v={"x": 1.0})
    with pytest.raises(ld.LoopdynError, match="two equal peaks"):
        ld.sensitivity(system, "peak(x)", "k", state=state, t_span=(0, 9))
    found = ld.sensitivity(system, ["peak(x)", "mean(x*x)"], "k", state=state, t_span=(0, 2 * np.pi))
    # x = sin(w t)/w, w^2 = k: the peak 1/w; the integral of sin^2(w t)/w^2 over T = 2 pi has at w = 1 the derivative
    # by w -2 pi + integral of 2 t sin t cos t = -2 pi - pi, and dw/dk = 1/2
    assert found["peak(x)", "k"] == pytest.approx(-0.5, abs=1e-9)
    assert found["mean(x*x)", "k"] == pytest.approx(-0.75, abs=1e-9)
    touch = ld.events.Crossing("a - 0.99999999999999", "touch", coordinates={"a": "x"})
    with pytest.raises(ld.LoopdynError, match="only grazes"):
        ld.sensitivity(system, "x", "k", state=state, t_span=(0, 3), events=[touch])


def rotor():
    """A rotor without weight, at the speed w; T is a point on it at the angle atan2(e1, L)."""
    m = ld.Mechanism("rotor", gravity=(0, 0, 0), parameters={"L": 0.5, "w": 9.0, "e1": 0.1})
    m.add_body("rotor", ld.Inertia.point(1.0, at=("L", 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rotor", at=(0, 0, 0))
    m.points |= {"O": {"at": (0, 0, 0), "on": "ground"}, "X": {"at": (1, 0, 0), "on": "ground"}}
    m.points |= {"T": {"at": ("L", "e1", 0), "on": "rotor"}}
    m.start.v["A"] = "w"
    m.add_measure("angle", "angle(X, O, T, about=z)")
    return m.compile()


@pytest.mark.parametrize("turns", [0.5, 1.5])
def test_angles_keep_their_turns_at_events_at_half_a_turn_and_behind_them(turns):
    """At the angle b the speed drops to 0.8 w: b = a0 + w t, then b + 0.8 w (T - t); values are those of the run."""
    system, T, b = rotor(), 1.5, 2 * np.pi * turns

    def slower(state):
        return ld.State(state.t, state.q, 0.8 * state.v)

    events = [ld.events.Crossing(f"angle - {b!r}", "slower", action=slower)]
    of = ["time(slower)", "angle", "mean(angle)", "peak(angle)"]

    def expected(L=0.5, w=9.0, e1=0.1):
        a0 = np.arctan2(e1, L)
        t = (b - a0) / w
        end, total = b + 0.8 * w * (T - t), a0 * t + w * t**2 / 2 + b * (T - t) + 0.4 * w * (T - t) ** 2
        return np.array([t, end, total / T, end])

    found = ld.sensitivity(system, of, t_span=(0, T), events=events)
    assert found.values == pytest.approx(expected(), abs=1e-9)
    run = ld.simulate(system, t_span=(0, T), events=events, progress=False)
    assert found.value("angle") == pytest.approx(run["angle"].values[-1], abs=1e-5)
    for k, (name, x) in enumerate({"L": 0.5, "w": 9.0, "e1": 0.1}.items()):
        slope = five_points(lambda y, n=name: expected(**{n: y}), x, 1e-3 * x)
        assert found.derivatives[:, k] == pytest.approx(slope, abs=1e-7), name


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ld.library.ALL if name != "random_mechanism"])  # which has none
def test_runs_of_the_library_against_differences(name):
    """Five functionals by two parameters, with an event that reverses the motion half-way."""
    build = ld.library.ALL[name]
    check_run(build, numbers(build()), SPANS.get(name, 0.3), STEPS.get(name, 1e-3))


# Seconds after which other coordinates have become better, by mechanism; the others of the library keep theirs.
SWITCHING = {"four_bar": 0.6, "watt": 0.9, "stephenson": 0.9, "five_bar": 0.3, "star_ladder": 0.6, "theo_jansen": 0.3}


@pytest.mark.slow
@pytest.mark.parametrize("name", SWITCHING)
def test_runs_of_the_library_with_an_event_and_a_switch_against_differences(name):
    """As above by `partition`, which exchanges independent speeds as soon as others are better by a thousandth."""
    build = ld.library.ALL[name]
    check_run(build, numbers(build()), SWITCHING[name], formulation=ld.Partition(switch=1.001), switched=True)


def test_a_run_from_the_speeds_of_the_model_keeps_these_when_lengths_change():
    """The start of the library's four-bar is that of its drawing, with the speed of A: it is A that is held."""
    m = ld.library.four_bar()
    found = ld.sensitivity(m, ["end(D)"], ["crank", "rocker"], t_span=(0, 1))
    assert found.held == ("A",)
    for name in ("crank", "rocker"):
        x = m.parameters[name]

        def end(step: float, name: str = name, x: float = x) -> float:
            system = m.with_(**{name: x + step}).compile()
            return float(ld.simulate(system, t_span=(0, 1), rtol=1e-11, progress=False)["D"][-1])

        coarse, fine = ((end(h) - end(-h)) / (2.0 * h) for h in (1e-3 * x, 5e-4 * x))
        assert found["end(D)", name] == pytest.approx((4.0 * fine - coarse) / 3.0, rel=1e-6)  # Richardson


def test_a_start_speed_that_is_not_held_is_warned_of():
    m = ld.library.four_bar()
    m.start = ld.library.four_bar().start.model_copy(update={"q": {"A": 0.2}, "v": {"D": 1.0}})
    with pytest.warns(ld.LoopdynWarning, match="start gives the speed of D.*speed of A held"):
        ld.sensitivity(m, ["end(D)"], ["crank"], t_span=(0, 0.1))
