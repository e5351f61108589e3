"""Machines with contacts against the references of tests/one_sided_references.py, which do not use loopdyn."""

from __future__ import annotations

import numpy as np
import pytest
from tests import one_sided_references as ref

import loopdyn as ld
from loopdyn.constraints import CircleShape, LineShape, PointShape, PolylineShape
from loopdyn.contacts import Backlash, Contact

Z = (0, 0, 1)
PRECISE = {"rtol": 1e-11, "progress": False}  # errors of a run: some hundred steps of this size


def times(run: ld.results.Run, *kinds: str) -> list[float]:
    return [e.t for e in run.events if e.kind in kinds]


def flat(mass: float, about_z: float, at: tuple = (0, 0, 0)) -> ld.Inertia:
    """Inertia of a body that moves in the plane."""
    return ld.Inertia(mass, at, np.diag([about_z, about_z, about_z]))


# ------------------------------------------------------------------------------------------------------ Housner


def test_housners_block_rocks_by_the_closed_form():
    """Each corner stands in a notch with steep walls, which keeps it from sliding; both have restitution 0."""
    alpha, h, mass, angle = 0.25, 0.4, 3.0, 0.1
    b = h * np.tan(alpha)
    m = ld.Mechanism("block", gravity=(0, -ref.GRAVITY, 0))
    m.add_body("block", flat(mass, mass * (b * b + h * h) / 3, (0, h, 0)))
    m.add_joint("P", ld.Planar(normal=Z), m.ground, "block", at=(0, h, 0))
    for name, x in (("left", -b), ("right", b)):
        notch = PolylineShape(points=[(x + 0.01, 0.03, 0), (x, 0, 0), (x - 0.01, 0.03, 0)])
        corner = PointShape(at=(x, 0, 0))
        m.add_contact(name, Contact(body1="ground", shape1=notch, body2="block", shape2=corner))
    system = m.compile()
    c, s = np.cos(angle), np.sin(angle)
    start = system.state(q={"P.angle": angle, "P.x": b * c - h * s - b, "P.y": b * s + h * c - h})
    expected, speeds = ref.rocking_block(float(np.hypot(b, h)), alpha, angle, 3)
    run = ld.simulate(system, start, (0, 2.0), **PRECISE)
    hits = [e for e in run.events if e.kind == "impact"][:3]
    np.testing.assert_allclose([e.t for e in hits], expected, rtol=1e-9)
    for e, speed in zip(hits, speeds, strict=True):
        ratio = e.after.v[system.labels["P.angle.speed"].index] / e.state.v[system.labels["P.angle.speed"].index]
        assert ratio == pytest.approx(0.9081869214, abs=1e-9)  # poses are located, and projected, to 1e-10
        assert abs(e.after.v[system.labels["P.angle.speed"].index]) == pytest.approx(speed, rel=1e-8)
    assert run.energy_error < 1e-8


# ---------------------------------------------------------------------------------------------------------- cam


def cam_drive(cam: ref.Cam, omega: float) -> tuple[ld.System, ld.State]:
    m = ld.Mechanism("cam", gravity=(0, -cam.g, 0))
    m.add_body("cam", flat(1.0, 1e-3, (cam.e, 0, 0)))
    m.add_body("follower", flat(cam.m, 1e-3))
    m.add_joint("A", ld.Revolute(axis=Z), m.ground, "cam", at=(0, 0, 0))
    m.add_joint("Y", ld.Prismatic(axis=(0, 1, 0)), m.ground, "follower", at=(0, 0, 0))
    m.add_driver("turn", "A", f"{omega!r}*t")
    m.add_force("spring", ld.forces.JointSpring(joint="Y", stiffness=cam.k, rest=cam.R - cam.e - cam.F0 / cam.k))
    circle = CircleShape(centre=(cam.e, 0, 0), radius=cam.R)
    face = LineShape(through=(0, 0, 0), outward=(0, -1, 0))
    m.add_contact("c", Contact(body1="cam", shape1=circle, body2="follower", shape2=face))
    system = m.compile()
    return system, ld.assemble(system, q={"Y": cam.R}, v={"A": omega, "Y": cam.e * omega})


def test_follower_leaves_the_cam_above_the_speed_of_the_closed_form():
    cam = ref.Cam()
    for factor, leaves in ((1 - 1e-8, False), (1 + 1e-8, True)):
        omega = factor * cam.lift_off_speed()
        run = ld.simulate(*cam_drive(cam, omega), (0, 2 * np.pi / omega), **PRECISE)
        assert bool(times(run, "separation")) == leaves


def test_follower_lands_and_leaves_at_the_times_of_the_closed_form():
    cam = ref.Cam()
    omega = 1.15 * cam.lift_off_speed()
    run = ld.simulate(*cam_drive(cam, omega), (0, 0.11), **PRECISE)
    expected = cam.events(omega, 0.11)
    separations, landings = ([t for t, kind in expected if kind == k] for k in ("separation", "landing"))
    np.testing.assert_allclose(times(run, "separation"), separations, rtol=0, atol=1e-9)
    np.testing.assert_allclose(times(run, "impact"), landings, rtol=0, atol=1e-9)
    assert run["c.gap"].min() > -1e-10
    assert run["c.force"].min() > -1e-6
    assert run.energy_error < 1e-8


# ----------------------------------------------------------------------------------------------------- backlash


def test_gears_with_backlash_under_a_reversing_torque():
    """Runs from reversal to reversal; every event within the tolerance of the integration."""
    gears = ref.Gears()
    expected = gears.events(7)

    def driven(torque: float) -> ld.System:
        m = ld.Mechanism("gears", gravity=(0, 0, 0))
        for name, inertia, x in (("a", gears.I1, 0.0), ("b", gears.I2, 1.0)):
            m.add_body(name, flat(1.0, inertia, (x, 0, 0)))
            m.add_joint(name.upper(), ld.Revolute(axis=Z), m.ground, name, at=(x, 0, 0))
        m.add_contact("mesh", Backlash(terms={"A": 1.0, "B": -gears.n}, play=gears.b))
        m.add_motor("motor", "A", torque=torque)
        return m.compile()

    systems = [driven(gears.T), driven(-gears.T)]
    state, half, found = systems[0].state(), gears.period / 2, []
    for k in range(4):
        run = ld.simulate(systems[k % 2], state, (k * half, (k + 1) * half), **PRECISE)
        found += [(e.t, e.kind, e.after.v) for e in run.events if e.kind == "impact" or (k and e.kind == "separation")]
        state = run.state(-1)
    contacts = [e for e in expected if e[1] == "contact"][:4]
    hits = [e for e in found if e[1] == "impact"]
    np.testing.assert_allclose([e[0] for e in hits], [e[0] for e in contacts], rtol=0, atol=1e-10)
    np.testing.assert_allclose([e[2] for e in hits], [e[3:] for e in contacts], rtol=0, atol=1e-9)


# ----------------------------------------------------------------------------------------------- play of a bearing


def test_slider_crank_with_a_tenth_of_a_millimetre_of_play():
    """First three impacts: times, speeds after them, and impulses of the independent integration."""
    s = ref.Slider()
    _, x, rate, speed = s.at_start()
    a = s.start
    A, B = s.r * np.array([np.cos(a), np.sin(a), 0]), np.array([x, 0, 0])
    m = ld.Mechanism("slider-crank", gravity=(0, -s.g, 0))
    m.add_body("crank", flat(1.0, 1e-3))
    m.add_body("rod", flat(s.m, s.I, tuple(A + s.lc / s.L * (B - A))))
    m.add_body("slider", flat(s.M, 1e-3, tuple(B)))
    m.add_joint("A", ld.Revolute(axis=Z), m.ground, "crank", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=Z), "crank", "rod", at=tuple(A))
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, "slider", at=tuple(B))
    m.add_driver("turn", "A", f"{s.omega!r}*t")
    hole = CircleShape(centre=tuple(B), radius=0.01 + s.c, hollow=True)
    pin = CircleShape(centre=tuple(B), radius=0.01)
    m.add_contact("play", Contact(body1="slider", shape1=hole, body2="rod", shape2=pin, restitution=s.e))
    system = m.compile()
    state = ld.assemble(system, q={"B": 0.0, "S": 0.0}, v={"A": s.omega, "B": rate - s.omega, "S": speed})
    run = ld.simulate(system, state, (0, 0.0045), **PRECISE)
    hits = [e for e in run.events if e.kind == "impact"]
    expected = s.impacts(3)
    assert len(hits) >= 3
    for e, (t, _, after, impulse) in zip(hits, expected, strict=False):
        # the rebound speed is a difference of speeds a hundred times as large
        assert e.t == pytest.approx(t, abs=1e-9)
        found = [
            after_rate + s.omega if label == "B" else after_rate
            for label, after_rate in zip("BS", _speeds(system, e), strict=True)
        ]
        np.testing.assert_allclose(found, after[2:], rtol=0, atol=1e-7)
        assert e.impulse.multipliers["play"] == pytest.approx(impulse, rel=1e-6)


def _speeds(system: ld.System, event: object) -> list[float]:
    return [event.after.v[system.labels[f"{name}.speed"].index] for name in "BS"]


# ------------------------------------------------------------------------------------------------- Geneva drive

A_PIN, SLOTS, OMEGA, CLEARANCE = 0.1, 4, 6.0, 1e-7  # m, rad/s, m


def geneva_drive(start: float, error: float = 0.0) -> tuple[ld.System, ld.State]:
    """A driven crank with a pin of 5 mm, and a wheel whose slots are wider by the clearance on either side.

    A damper keeps the wheel at rest in the dwells. The wheel is out of its place by `error`.
    """
    r, d = 0.005, np.sqrt(2.0) * A_PIN
    bottom, half, corners = d - A_PIN - 3 * r, r + CLEARANCE, []
    for k in range(SLOTS):
        angle = np.pi / 4 + k * np.pi / 2 + error
        u, n = np.array([np.cos(angle), np.sin(angle), 0]), np.array([-np.sin(angle), np.cos(angle), 0])
        corners += [A_PIN * u - half * n, bottom * u - half * n, bottom * u + half * n, A_PIN * u + half * n]
    m = ld.Mechanism("geneva", gravity=(0, 0, 0))
    m.add_body("crank", flat(1.0, 1e-3))
    m.add_body("wheel", flat(1.0, 2e-3, (d, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=Z), m.ground, "crank", at=(0, 0, 0))
    m.add_joint("W", ld.Revolute(axis=Z), m.ground, "wheel", at=(d, 0, 0))
    m.add_driver("turn", "A", f"{OMEGA!r}*t")
    m.add_force("spring", ld.forces.JointSpring(joint="W", damping=0.2))
    pin = CircleShape(centre=(A_PIN * np.cos(start), A_PIN * np.sin(start), 0), radius=r)
    wheel = PolylineShape(points=[tuple(p + [d, 0, 0]) for p in corners], closed=True)
    m.add_contact("pin", Contact(body1="wheel", shape1=wheel, body2="crank", shape2=pin))
    system = m.compile()
    return system, ld.assemble(system, q={"A": 0.0, "W": 0.0}, v={"A": OMEGA, "W": 0.0})


@pytest.mark.parametrize("turns", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_geneva_drive_indexes_as_its_closed_form(turns):
    """The clearance c lets the wheel be off by c over the least lever, 0.41 a, and hit at about sqrt(2 c a) omega.

    That speed over the lever is 7 % of omega for the first moments of an engagement and of a change of the wall.
    """
    start = -0.4 * np.pi
    times = np.linspace(0, turns * 2 * np.pi / OMEGA, 120 * turns + 1)
    run = ld.simulate(*geneva_drive(start), (0, times[-1]), t_eval=times, rtol=1e-9, progress=False)
    assert run.status == "finished"
    expected = -ref.geneva_indexing(times, OMEGA, start)
    np.testing.assert_allclose(run["W"].values, expected, rtol=0, atol=3 * CLEARANCE / (0.41 * A_PIN))
    at_middle = np.argmin(np.abs(start + OMEGA * times))
    alpha = start + OMEGA * times[at_middle]
    speed = run["W.speed"].values[at_middle]
    assert speed == pytest.approx(-OMEGA * ref.geneva(alpha)[1], rel=0.01)


def test_geneva_wheel_out_of_place_takes_the_impulse_of_the_closed_form():
    """The crank is at -40 degrees when the pin meets the slot: the clearance takes 1e-6 s, or 1e-4 of the speed."""
    start = np.radians(-40.0)
    run = ld.simulate(*geneva_drive(start, float(-ref.geneva(start)[0] - np.pi / 4)), (0, 1e-3), **PRECISE)
    hit = next(e for e in run.events if e.kind == "impact")
    speed, impulse = ref.geneva_wrong_entry(A_PIN, 2e-3, OMEGA, float(start), 0.0)
    # the impulse of the reference is along its n, that of a contact is positive
    assert hit.after.v[1] == pytest.approx(speed, rel=1e-3)
    assert sum(hit.impulse.multipliers[k] for k in hit.impulse.multipliers if k.startswith("pin")) == pytest.approx(
        abs(impulse), rel=1e-3
    )


@pytest.mark.parametrize("turns", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_geneva_drive_has_the_peaks_and_the_jump_of_the_textbook(turns):
    """Of the wheel in a run: peak speed 1 + sqrt(2), peak acceleration 5.40698 at 11.464 degrees, jump 1.0 at entry.

    The clearance c shifts the wall by c/a = 1e-6 of its lever. The damper keeps the pin on one wall. Later turns begin
    with a wheel that stands up to 2 c out of place, which the pin crosses within 0.2 degrees: (alpha + 45)^2 a/2 = 2 c.
    """
    peak, highest = ref.geneva_peak()
    assert (np.degrees(peak), highest) == (pytest.approx(11.464, abs=5e-4), pytest.approx(5.40698, abs=5e-6))
    degrees = [-46.0, -44.7, -30.0, -np.degrees(peak), -5.0, 0.0, 5.0, np.degrees(peak), 30.0, 44.0, 60.0]
    alphas = np.radians(np.concatenate([np.add(degrees, 360.0 * k) for k in range(turns)]))
    start = -0.4 * np.pi
    times = np.concatenate([[0.0], (alphas - start) / OMEGA])
    run = ld.simulate(*geneva_drive(start), (0, times[-1]), t_eval=times, rtol=1e-9, progress=False)
    assert run.status == "finished"
    found = -run["W.acceleration"].values[1:].reshape(turns, -1) / OMEGA**2
    _, speed, expected = ref.geneva(np.radians(degrees))
    speed[[0, -1]] = expected[[0, -1]] = 0.0  # dwell
    np.testing.assert_allclose(found, np.tile(expected, (turns, 1)), rtol=0, atol=2e-3)
    assert np.abs(found).max() == pytest.approx(5.40698, abs=2e-3)
    assert found[0, 1] - found[0, 0] == pytest.approx(1.0, abs=0.02)  # 0.3 degrees behind the entry
    ratio = -run["W.speed"].values[1:].reshape(turns, -1) / OMEGA
    np.testing.assert_allclose(ratio, np.tile(speed, (turns, 1)), rtol=0, atol=1e-4)
    assert ratio.max() == pytest.approx(1 + np.sqrt(2), rel=1e-5)


def test_geneva_pin_enters_without_impulse_at_the_right_angle():
    """What is left is due to the clearance c, which the pin crosses at sqrt(2 c a) omega: a hundredth of a wrong."""
    run = ld.simulate(*geneva_drive(np.radians(-50.0)), (0, np.radians(8.0) / OMEGA), **PRECISE)
    hits = [e for e in run.events if e.kind == "impact"]
    pins = sum(x for e in hits for k, x in e.impulse.multipliers.items() if k.startswith("pin"))
    assert pins == pytest.approx(2e-3 / A_PIN**2 * np.sqrt(2 * CLEARANCE * A_PIN) * OMEGA, rel=0.02)
    _, wrong = ref.geneva_wrong_entry(A_PIN, 2e-3, OMEGA, np.radians(-40.0), 0.0)
    assert pins < 0.02 * abs(wrong)


# ------------------------------------------------------------------------------------------------------- ratchet


def test_ratchet_holds_under_load():
    """The tip stands in the root of a tooth; both forces by the balance of moments of wheel and pawl."""
    torque, tip, pivot = 5.0, np.array([1.0, 0.0]), np.array([1.5, 1.0])
    m = ld.Mechanism("ratchet", gravity=(0, 0, 0))
    m.add_body("wheel", flat(2.0, 0.5))
    m.add_body("pawl", flat(0.2, 0.05, (1.25, 0.5, 0)))
    m.add_joint("W", ld.Revolute(axis=Z), m.ground, "wheel", at=(0, 0, 0))
    m.add_joint("P", ld.Revolute(axis=Z), m.ground, "pawl", at=(*pivot, 0))
    tooth = [(1.2, -0.5, 0), (1.2, 0, 0), (1, 0, 0), (1, 0.5, 0), (-1, 0.5, 0), (-1, -0.5, 0)]
    wheel = PolylineShape(points=tooth, closed=True)
    m.add_contact("c", Contact(body1="wheel", shape1=wheel, body2="pawl", shape2=PointShape(at=(*tip, 0))))
    m.add_motor("load", "W", torque=torque)
    system = m.compile()
    run = ld.simulate(system, system.state(), (0, 2.0), progress=False)
    force, moment = ref.ratchet(torque, tip, np.array([0.0, -1.0]), pivot)
    root = -moment / (pivot[1] - tip[1])  # the root pushes the tip along x, with this lever about the pivot
    assert run["c.force"].values[-1] == pytest.approx(force + root, rel=1e-12)  # sum of both sides
    assert run["W"].values[-1] == 0.0  # it rests without creep
    assert run["P"].values[-1] == 0.0
    assert run.status == "finished"


# ------------------------------------------------------------------------------------------------- knuckle press


def press(resistance: str) -> tuple[ld.System, ld.State]:
    """Press of the reference; its work-piece is a compliant stop under the ram, or a table of force by position."""
    p = ref.Press()
    knee = p.L * np.array([np.sin(p.theta), -np.cos(p.theta), 0])
    ram = np.array([0, -2 * p.L * np.cos(p.theta), 0])
    met = float(-p.depth - ram[1])  # coordinate of the slide at which the ram meets the work-piece
    m = ld.Mechanism("press", gravity=(0, -ref.GRAVITY, 0))
    m.add_body("upper", ld.Inertia.rod(mass=p.bar, start=(0, 0, 0), end=tuple(knee)))
    m.add_body("lower", ld.Inertia.rod(mass=p.bar, start=tuple(knee), end=tuple(ram)))
    m.add_body("ram", flat(p.m, 0.1, tuple(ram)))
    m.add_joint("A", ld.Revolute(axis=Z), m.ground, "upper", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=Z), "upper", "lower", at=tuple(knee))
    m.add_joint("C", ld.Revolute(axis=Z), "lower", "ram", at=tuple(ram))
    m.add_joint("Y", ld.Prismatic(axis=(0, 1, 0)), m.ground, "ram", at=tuple(ram))
    m.add_force("push", ld.forces.AppliedForce(body="upper", force=(-p.P, 0, 0), at=tuple(knee)))
    if resistance == "contact":
        m.add_contact("piece", ld.contacts.Stop(joint="Y", lower=met, stiffness=p.k))
    else:
        points = [(met - 0.05, 0.05 * p.k), (met, 0.0), (met + 1.0, 0.0)]
        m.add_motor("piece", "Y", force=ld.forces.Table(of="position", points=points, interpolation="linear"))
    system = m.compile(cuts=["C"])
    return system, ld.assemble(system)


def test_knuckle_press_resists_near_the_bottom_as_contact_and_as_table():
    """Both against each other, and against the equation of one angle that is integrated from contact to contact."""
    p, times = ref.Press(), np.linspace(0.0, 0.3, 61)
    expected = p.run(times)[0]
    with pytest.warns(ld.LoopdynWarning, match="falls between outputs, and peaks"):
        contact = ld.simulate(*press("contact"), (0, 0.3), t_eval=times, **PRECISE)
    runs = contact, table = [contact, ld.simulate(*press("table"), (0, 0.3), t_eval=times, **PRECISE)]
    pressed = contact["piece.force"].values > 0.0
    assert 2 < pressed.sum() < 40
    assert np.all(2 * p.L * np.cos(expected[~pressed]) <= p.depth + 1e-9)
    for run in runs:  # both kinks of the force, stiff at the bottom: 1e-11 per step
        np.testing.assert_allclose(p.theta + run["A"].values, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(contact["A"].values, table["A"].values, rtol=0, atol=1e-7)
    np.testing.assert_allclose(contact["piece.force"].values, table["piece.load"].values, rtol=1e-4, atol=1.0)
    assert contact["piece.force"].values.max() > 20 * p.P  # the mechanical advantage
    assert max(run.energy_error for run in runs) < 1e-7


# ---------------------------------------------------------------------------------------------------- 6-UPS platform


def test_platform_rests_on_six_stops():
    """Forces by virtual work: the potential energy of platform and legs against the lengths, all from coordinates."""
    system = ld.library.stewart_6ups(stops=True).compile()
    run = ld.simulate(system, system.state(), (0, 1.0), progress=False)
    forces = np.array([run[f"stop{k + 1}.force"].values[-1] for k in range(6)])

    def on_circle(radius: float, z: float, half: float) -> np.ndarray:
        angles = np.radians([120 * (k // 2) + (half if k % 2 else -half) for k in range(6)])
        return np.stack([radius * np.cos(angles), radius * np.sin(angles), np.full(6, z)], axis=1)

    base, ends = on_circle(0.6, 0.0, 15.0), on_circle(0.35, 0.8, 45.0)
    full = np.linalg.norm(ends - base, axis=1)

    def moved(x: np.ndarray) -> tuple[np.ndarray, float]:
        """Lengths and potential energy after a small translation and rotation about the origin."""
        legs = ends + x[:3] + np.cross(x[3:], ends) - base
        length = np.linalg.norm(legs, axis=1)
        lower, upper = 0.275 * full, length - 0.3 * full  # distances of the centres from the base
        height = legs[:, 2] / length
        platform = 20.0 * (x[2] + np.cross(x[3:], (0.0, 0.0, 0.82))[2])
        return length, ref.GRAVITY * float(platform + np.sum((2.0 * lower + 1.0 * upper) * height))

    steps = 1e-5 * np.eye(6)
    pairs = [(moved(h), moved(-h)) for h in steps]
    lengths = np.array([(a[0] - b[0]) / 2e-5 for a, b in pairs])
    energy = np.array([(a[1] - b[1]) / 2e-5 for a, b in pairs])
    # places are rounded to 1e-4 m of 0.35 m in the model
    np.testing.assert_allclose(forces, np.linalg.solve(lengths, energy), rtol=1e-3)
    assert np.abs(run.state(-1).q - system.state().q).max() < 1e-12  # no creep
    assert not any("indeterminate" in run[f"stop{k + 1}.force"].attrs for k in range(6))


def test_platform_rests_for_hours_without_creep_and_without_cost():
    """Two hours on six stops: nothing moves, and the steps grow to a tenth of the span."""
    system = ld.library.stewart_6ups(stops=True).compile()
    run = ld.simulate(system, system.state(), (0, 7200.0), t_eval=[0.0, 3600.0, 7200.0], progress=False)
    assert run.statistics.steps < 30
    assert run.statistics.evaluations < 500
    np.testing.assert_allclose(run.path.q[1:], run.path.q[[0, 0]], atol=1e-14)
    assert np.abs(run.path.v).max() < 1e-14
    forces = np.array([run[f"stop{k + 1}.force"].values for k in range(6)])
    np.testing.assert_allclose(forces[:, 1:], forces[:, [1, 1]], rtol=1e-10)
    assert (forces[:, 1:] > 0.0).all()
