"""Derivatives of runs by parameters through locks, releases and added constraints: closed forms, differences."""

import numpy as np
import pytest
from scipy.special import ellipk

import loopdyn as ld

G = 9.81
# Floats of a model are differenced by parameters: 1e-10; the runs are integrated to 1e-10.
CLOSE = 1e-8


def five_points(f, x, h):
    """Richardson difference; its error is the fourth power of h/x."""
    up, down, up2, down2 = (f(x + k * h) for k in (1, -1, 2, -2))
    return (8 * (up - down) - (up2 - down2)) / (12 * h)


def carriages():
    """A carriage of mass M and speed u; on it a mass m with the relative speed w, caught at the distance d."""
    m = ld.Mechanism("carriages", gravity=(0, 0, 0), parameters={"M": 3.0, "m": 1.0, "d": 0.5, "u": 0.2, "w": 2.0})
    m.add_body("carriage", ld.Inertia.point("M"))
    m.add_body("mass", ld.Inertia.point("m"))
    x = ld.Prismatic(axis=(1, 0, 0))
    m.add_joint("x", x, m.ground, "carriage", at=(0, 0, 0))
    m.add_joint("s", x, "carriage", "mass", at=(0, 0, 0))
    m.start.v.update({"x": "u", "s": "w"})
    m.add_measure("free", "s - d")
    return m.compile()


def test_a_slider_that_is_caught_at_a_speed_in_closed_form():
    """At d/w both go on with (M u + m (u + w))/(M + m): x(T) = u d/w + V (T - d/w), and s(T) = d."""
    system, T = carriages(), 1.0
    catch = ld.events.Crossing("free", "caught", action=ld.events.Lock("s"))
    of = ["x", "s", "x.speed", "s.speed", "time(caught)", "integral(x.speed)", "integral(s)"]
    found = ld.sensitivity(system, of, t_span=(0, T), events=[catch])
    M, m, d, u, w = 3.0, 1.0, 0.5, 0.2, 2.0
    t, V = d / w, u + m * w / (M + m)
    dV = {"M": -m * w / (M + m) ** 2, "m": M * w / (M + m) ** 2, "d": 0.0, "u": 1.0, "w": m / (M + m)}
    dt = {"M": 0.0, "m": 0.0, "d": 1 / w, "u": 0.0, "w": -d / w**2}
    assert found.values == pytest.approx(
        [u * t + V * (T - t), d, V, 0, t, u * t + V * (T - t), d * T - d**2 / (2 * w)], abs=1e-10
    )
    for p in dV:
        dx = (u - V) * dt[p] + dV[p] * (T - t) + (t if p == "u" else 0.0)
        caught = float(p == "d")
        expected = [dx, caught, dV[p], 0.0, dt[p], dx, {"d": T - d / w, "w": d**2 / (2 * w**2)}.get(p, 0.0)]
        assert found.derivatives[:, list(dV).index(p)] == pytest.approx(expected, abs=CLOSE), p


def test_a_pendulum_that_is_released_at_an_angle_in_closed_form():
    """A driver holds it until `t1`; to the lowest point then takes K(sin(a/2)) sqrt(L/g)."""
    m = ld.library.pendulum()
    m.parameters["turned"] = 0.3  # from the level
    m.add_driver("hold", "A", "turned")
    m.start.q["A"] = "turned"
    system = m.compile()
    go = ld.events.At(0.2, "go", action=ld.events.Release("hold"))
    lowest = ld.events.Crossing("A - pi/2", "lowest", stop=True)
    found = ld.sensitivity(system, ["time(lowest)", "A.speed"], t_span=(0, 3), events=[go, lowest])
    a = np.pi / 2 - 0.3
    quarter = ellipk(np.sin(a / 2) ** 2) * np.sqrt(1 / G)
    assert found.value("time(lowest)") == pytest.approx(0.2 + quarter, abs=1e-9)
    assert found["time(lowest)", "length"] == pytest.approx(quarter / 2, abs=CLOSE)
    assert found["time(lowest)", "g"] == pytest.approx(-quarter / 2 / G, abs=CLOSE)
    by_angle = five_points(lambda x: -ellipk(np.sin((np.pi / 2 - x) / 2) ** 2) * np.sqrt(1 / G), 0.3, 1e-3)
    assert found["time(lowest)", "turned"] == pytest.approx(-by_angle, abs=CLOSE)
    # v = sqrt(2 g (1 - sin(turned))/L)
    v = np.sqrt(2 * G * (1 - np.sin(0.3)))
    assert found["A.speed", "turned"] == pytest.approx(-G * np.cos(0.3) / v, abs=CLOSE)


def test_an_elbow_locked_at_a_speed_in_closed_form():
    """Two points on arms of length a, stretched; momentum about the shoulder is kept: w+ = (sum m r v)/(sum m r^2)."""
    m = ld.Mechanism("arm", gravity=(0, 0, 0), parameters={"a": 1.0, "mass": 2.0, "w": 3.0})
    m.add_body("upper", ld.Inertia.point(1.0, at=("a", 0, 0)))
    m.add_body("lower", ld.Inertia.point("mass", at=("2*a", 0, 0)))
    z = ld.Revolute(axis=(0, 0, 1))
    m.add_joint("A", z, m.ground, "upper", at=(0, 0, 0))
    m.add_joint("B", z, "upper", "lower", at=("a", 0, 0))
    m.start.v.update({"A": 1.0, "B": "w"})
    system, t = m.compile(), 1e-9  # at once, before the arm bends
    lock = ld.events.At(t, "lock", action=ld.events.Lock("B"))
    found = ld.sensitivity(system, ["A.speed"], ["a", "mass", "w"], t_span=(0, 2e-9), events=[lock])
    # speeds of the points: a 1 and 2 a 1 + a w
    M, w = 2.0, 3.0
    momentum, inertia = 1 + M * 2 * (2 + w), 1 + 4 * M
    assert found.value("A.speed") == pytest.approx(momentum / inertia, rel=1e-8)
    by_mass = 2 * (2 + w) / inertia - 4 * momentum / inertia**2
    assert found.derivatives[0] == pytest.approx([0.0, by_mass, 2 * M / inertia], abs=1e-7)


def test_the_load_of_a_lock_in_closed_form():
    """Caught at d the mass turns with its arm: the pull along the arm is m (r + d) W^2, W by the momentum."""
    m = ld.Mechanism("sling", gravity=(0, 0, 0), parameters={"J": 1.0, "m": 0.5, "d": 0.4})
    m.add_body("arm", ld.Inertia.from_principal(1.0, (0, 0, 0), ("J", "J", "J")))
    m.add_body("mass", ld.Inertia.point("m", at=(1, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "arm", at=(0, 0, 0))
    m.add_joint("s", ld.Prismatic(axis=(1, 0, 0)), "arm", "mass", at=(1, 0, 0))
    m.start.v.update({"A": 2.0})
    m.add_measure("free", "s - d")
    system = m.compile()
    catch = ld.events.Crossing("free", "caught", action=ld.events.Lock("s"))
    found = ld.sensitivity(system, ["A.speed", "A.fx**2 + A.fy**2"], t_span=(0, 1), events=[catch])

    def pull(J, mass, d):
        W = 2.0 * (J + mass) / (J + mass * (1 + d) ** 2)  # momentum about the axis
        return W, (mass * (1 + d) * W**2) ** 2

    assert found.values == pytest.approx(pull(1.0, 0.5, 0.4), rel=1e-8)
    for k, (name, x) in enumerate({"J": 1.0, "m": 0.5, "d": 0.4}.items()):
        expected = [five_points(lambda y, n=name, i=i: pull(**{"J": 1.0, "mass": 0.5, "d": 0.4} |
                    {{"m": "mass"}.get(n, n): y})[i], x, 1e-3 * x) for i in (0, 1)]  # fmt: skip
        assert found.derivatives[:, k] == pytest.approx(expected, abs=1e-7), name


def check(system, of, parameters, events, options, tolerance=1e-7, step=1e-3):
    """Derivatives at the end of a run against differences of whole simulations."""
    start = ld.assemble(system)
    held = ld.sensitivity(system, "t", parameters[0], state=start).held
    found = ld.sensitivity(system, of, parameters, events=events, **options)
    assert found.held == held
    for k, name in enumerate(parameters):
        p = system.mechanism.parameters[name]

        def whole(x, name=name):
            other = system.with_parameters(**{name: x})
            run = ld.simulate(other, events=events, rtol=1e-12, progress=False, **options)
            assert [e.name for e in run.events if e.kind != "coordinate switch"] == [e.name for e in events]
            return np.array([run[label].values[-1] for label in of])

        expected = five_points(whole, p, step * abs(p))
        size = np.maximum(np.maximum(np.abs(expected) * abs(p), np.abs(found.values)), 1e-2)
        error = np.abs(found.derivatives[:, k] - expected) * abs(p) / size
        assert error.max() < tolerance, (name, found.derivatives[:, k], expected)


def five_bar():
    m = ld.library.five_bar()
    m.start.q.update({"A": 0.0, "E": 0.0})
    m.start.v.update({"A": 3.0, "E": -1.0})
    return m


@pytest.mark.parametrize("formulation", ["auto", "partition"])
def test_a_cut_joint_of_a_five_bar_locked_and_released_against_differences(formulation):
    """The angle of a cut joint is measured; the lock happens where the crank passes an angle, the release later."""
    system = five_bar().compile(cuts=["C"])
    lock = ld.events.Crossing("a - 0.4", "lock", action=ld.events.Lock("C"), coordinates={"a": "A"})
    free = ld.events.At(0.35, "free", action=ld.events.Release("C"))
    names = [n for n, x in system.mechanism.parameters.items() if not isinstance(x, str) and x][:2]
    options = {"t_span": (0, 0.5), "formulation": formulation}
    check(system, ["A", "E", "A.speed"], names, [lock, free], options)


def test_a_redundant_four_bar_that_is_cut_open_and_closed_again_by_its_own_joint():
    """Opened at a time and put back at once the motion is that of the closed four-bar, with its derivatives."""
    m = ld.library.four_bar()
    m.start.q["A"], m.start.v["A"] = 0.0, 3.0
    system = m.compile(cuts=["D"])
    names = [n for n, x in system.mechanism.parameters.items() if not isinstance(x, str) and x][:2]
    opened = ld.events.At(0.2, "open", action=ld.events.Release("D"))
    again = ld.events.At(0.2, "again", action=ld.events.Add("D"))
    plain = ld.sensitivity(system, ["A", "A.speed"], names, t_span=(0, 0.4))
    found = ld.sensitivity(system, ["A", "A.speed"], names, t_span=(0, 0.4), events=[opened, again])
    assert found.derivatives == pytest.approx(plain.derivatives, rel=1e-7)


def test_a_four_bar_thrown_open_against_differences():
    m = ld.library.four_bar()
    m.start.q["A"], m.start.v["A"] = 0.0, 3.0
    system = m.compile(cuts=["D"])
    opened = ld.events.Crossing("a - 0.5", "open", action=ld.events.Release("D"), coordinates={"a": "A"})
    names = [n for n, x in system.mechanism.parameters.items() if not isinstance(x, str) and x][:2]
    check(system, ["A", "B.speed", "C"], names, [opened], {"t_span": (0, 0.4)})


def test_a_rod_hooked_in_where_it_fits_is_refused_if_it_does_not_fit_with_another_length():
    """Two points slide side by side; a rod of their distance fits, whatever their mass, but at one distance only."""
    m = ld.Mechanism("pair", gravity=(0, -G, 0), parameters={"mass": 1.0, "apart": 1.0})
    for k, at in enumerate(("0", "apart")):
        m.add_body(f"p{k}", ld.Inertia.point("mass" if k else 1.0, at=(at, 0, 0)))
        m.add_joint(f"P{k}", ld.Prismatic(axis=(0, 1, 0)), m.ground, f"p{k}", at=(at, 0, 0))
    m.start.v.update({"P0": 1.0, "P1": -2.0})
    system = m.compile()
    from loopdyn.constraints import Distance

    level = ld.events.At(0.5, "level", action=ld.events.Lock("P0"))
    rod = Distance("p0", "p1", (0, 0, 0), ("apart", 0, 0), length=np.hypot(1.0, 1.5))  # P0 - P1 = 3 t = 1.5 at 0.5 s
    hook = ld.events.At(0.5, "hook", action=ld.events.Add("rod", rod))
    with pytest.raises(ld.LoopdynError, match="do not satisfy the constraints"):
        ld.sensitivity(system, "P0", "apart", t_span=(0, 1), events=[hook])
    found = ld.sensitivity(system, ["P0.speed", "P1.speed"], "mass", t_span=(0, 0.5 + 1e-9), events=[hook])
    # along the rod the speeds must agree: both slide in y, so P0' = P1' = (v0 + mass v1)/(1 + mass), v -= g t
    v0, v1 = 1.0 - G * 0.5, -2.0 - G * 0.5
    by_mass = (v1 - v0) / 4
    assert found.derivatives[:, 0] == pytest.approx([by_mass, by_mass], abs=1e-6)
    assert ld.sensitivity(system, "P0", "mass", t_span=(0, 1), events=[level])["P0", "mass"] == pytest.approx(
        0, abs=1e-9
    )
