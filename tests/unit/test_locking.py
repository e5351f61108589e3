"""Joints locked and constraints released inside a run, against momentum balances by hand and the run in pieces."""

import numpy as np
import pytest
from tests.literature import test_constraint_changes as literature

import loopdyn as ld
from loopdyn.integrators.stepper import Stepper
from loopdyn.run.context import RunContext
from loopdyn.run.events import watch
from loopdyn.run.locking import Phase
from loopdyn.run.recorder import Journal, Recorder

L1, L2, M1, M2 = 0.8, 0.5, 2.0, 1.0


def two_bars(units: ld.Units | None = None) -> ld.System:
    """Two bars in a row along x at the reference pose, pinned to the ground and to each other; no gravity."""
    factor = 1000.0 if units and units.length == "mm" else 1.0
    m = ld.Mechanism("two_bars", **({"units": units} if units else {}))
    a, b = L1 * factor, (L1 + L2) * factor
    m.add_body("one", ld.Inertia.rod(mass=M1, start=(0, 0, 0), end=(a, 0, 0)))
    m.add_body("two", ld.Inertia.rod(mass=M2, start=(a, 0, 0), end=(b, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "one", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=(0, 0, 1)), "one", "two", at=(a, 0, 0))
    return m.compile()


def momenta(state: ld.State) -> tuple[float, float, float]:
    """Angular momentum of all about A, of bar two about the place of B, and kinetic energy: by hand."""
    (q1, q2), (w1, w2) = state.q, state.v
    turn = lambda angle: np.array([np.cos(angle), np.sin(angle)])  # noqa: E731
    normal = lambda angle: np.array([-np.sin(angle), np.cos(angle)])  # noqa: E731
    cross = lambda a, b: float(a[0] * b[1] - a[1] * b[0])  # noqa: E731
    B, w = L1 * turn(q1), w1 + w2
    arm = L2 / 2 * turn(q1 + q2)
    speed = L1 * w1 * normal(q1) + L2 / 2 * w * normal(q1 + q2)
    own = M2 * L2**2 / 12 * w
    about_A = M1 * L1**2 / 3 * w1 + own + M2 * cross(B + arm, speed)
    energy = 0.5 * (M1 * L1**2 / 3 * w1**2 + M2 * speed @ speed + own * w)
    return about_A, own + M2 * cross(arm, speed), float(energy)


@pytest.mark.parametrize("units", [None, ld.Units(length="mm", angle="deg")])
@pytest.mark.parametrize("formulation", ["auto", "relative", "oracle"])
def test_a_hinge_that_locks_conserves_angular_momentum_about_the_pivot(units, formulation):
    system = two_bars(units)
    events = [
        ld.events.At(0.3, "lock", action=ld.events.Lock("B")),
        ld.events.At(0.6, "unlock", action=ld.events.Release("B")),
    ]
    start = system.state(q=[0.2, 0.7], v=[1.5, 4.0])
    run = ld.simulate(system, start, (0, 1), events=events, formulation=formulation, rtol=1e-10, progress=False)
    assert run.status == "finished", run.message
    lock, unlock = run.events
    before, after = momenta(lock.state), momenta(lock.after)
    assert before[0] == pytest.approx(momenta(start)[0], abs=1e-9)
    assert after[0] == pytest.approx(before[0], abs=1e-12)
    assert lock.after.v[1] == pytest.approx(0.0, abs=1e-13)
    # a rigid body about A: its energy is H^2/(2 I), the rest is lost
    B = L1 * np.array([np.cos(lock.state.q[0]), np.sin(lock.state.q[0])])
    centre = B + L2 / 2 * np.array([np.cos(lock.state.q.sum()), np.sin(lock.state.q.sum())])
    inertia = M1 * L1**2 / 3 + M2 * L2**2 / 12 + M2 * centre @ centre
    assert lock.after.v[0] == pytest.approx(before[0] / inertia, rel=1e-12)
    assert lock.energy_loss == pytest.approx(before[2] - before[0] ** 2 / (2 * inertia), rel=1e-11)
    # the moment of the lock is what changes the angular momentum of bar two about B
    assert lock.impulse.multipliers["lock B"] == pytest.approx(after[1] - before[1], rel=1e-11)
    # nothing jumps where it is released, and in between it turns as one body at a constant speed
    assert unlock.energy_loss == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(unlock.after.v, unlock.state.v, atol=1e-12)
    np.testing.assert_allclose(unlock.state.v, lock.after.v, atol=1e-9)
    assert unlock.state.q[1] == pytest.approx(lock.state.q[1], abs=1e-12)
    assert momenta(run.at(1.0))[0] == pytest.approx(before[0], abs=1e-9)
    assert run.energy_error < 1e-9
    assert run.largest_residual < 1e-12


def test_loads_of_a_lock_are_in_the_results():
    """Turning as one body, the lock carries the moment of bar two's inertia force about B."""
    system = two_bars()
    run = ld.simulate(
        system,
        system.state(q=[0.2, 0.7], v=[1.5, 4.0]),
        (0, 0.8),
        t_eval=[0.1, 0.5, 0.7],
        events=[
            ld.events.At(0.3, "lock", action=ld.events.Lock("B")),
            ld.events.At(0.6, "unlock", action=ld.events.Release("B")),
        ],
        rtol=1e-10,
        progress=False,
    )
    load = run.data["constraint_load"].sel(constraint="lock B").values
    q, w = run.events[0].state.q, run.events[0].after.v[0]
    # centripetal acceleration -w^2 (B + arm) of the centre, no angular acceleration: moment about B = arm x m a
    expected = -M2 * w**2 * (L2 / 2) * L1 * np.sin(-q[1])
    np.testing.assert_allclose(load, [0.0, expected, 0.0], atol=1e-9)
    assert "lock B" in run.summary().index
    assert run.data["residual_position"].sel(row="lock B").max() < 1e-12


@pytest.mark.parametrize("formulation", ["auto", "partition", "closure"])
def test_a_run_through_release_and_lock_follows_the_literature(formulation):
    """The four-bar of tests/literature/test_constraint_changes.py: opened at 0.3 s, locked at 0.5 s, in one run.

    Target g1 of blajer1993: one freedom, then three, then two; minimal coordinates are chosen anew each time.
    """
    system = literature.closed().compile(cuts=["O4"])
    events = [
        ld.events.At(0.3, "open", action=ld.events.Release("O4")),
        ld.events.At(0.5, "lock", action=ld.events.Lock("a2")),
    ]
    run = ld.simulate(system, system.state(*literature.START), (0, 0.8), events=events, rtol=1e-12, progress=False,
                      formulation=formulation)  # fmt: skip
    assert run.status == "finished", run.message
    opened, locked = (e for e in run.events if "independent" not in e.name)
    if formulation != "auto":
        names = [e.name for e in run.events if e.kind == "coordinate switch"]
        assert names == ["independent: a1 -> a1, a2, a3", "independent: a1, a2, a3 -> a1, a3"]
        freedoms = run.active.sum(axis=1)
        for t, count in ((0.1, 1), (0.4, 3), (0.7, 2)):
            assert freedoms[np.searchsorted(run.path.t, t)] == count
        assert np.isfinite(run.criterion).all()
    for state, expected in ((opened.state, literature.AT_03), (locked.state, literature.BEFORE_LOCK),
                            (locked.after, literature.AFTER_LOCK), (run.at(0.8), literature.AT_08)):  # fmt: skip
        np.testing.assert_allclose(literature.vector(state), expected, atol=literature.TOLERANCE)
    assert abs(opened.energy_loss) < 1e-11
    assert locked.energy_loss == pytest.approx(literature.ENERGY_LOSS, abs=literature.TOLERANCE)
    assert locked.impulse.multipliers["lock a2"] == pytest.approx(literature.IMPULSE, abs=literature.TOLERANCE)
    assert run.energy_error < 1e-9
    wrench = run.data["wrench"].sel(joint="O4").values
    assert np.abs(wrench[run.path.t < 0.3]).max() > 1.0
    assert np.abs(wrench[run.path.t > 0.3]).max() == 0.0


@pytest.mark.parametrize("formulation", ["auto", "partition", "closure"])
def test_a_closed_loop_that_is_locked_stands_still(formulation):
    """One degree of freedom: the lock takes all kinetic energy, also on the cut joint."""
    for label in ("A", "C"):
        system = ld.library.four_bar().compile(cuts=["C"])
        state = ld.assemble(system)
        events = [ld.events.Crossing("a - 0.5", "stop", action=ld.events.Lock(label), coordinates={"a": "A"})]
        run = ld.simulate(system, state, (0, 0.5), events=events, progress=False, formulation=formulation)
        assert run.status == "finished", run.message
        event = run.events[0]
        assert event.energy_loss == pytest.approx(ld.tree.energy(system, event.state).kinetic, rel=1e-9)
        assert np.abs(event.after.v).max() < 1e-9
        assert run.path.q[-1, 0] == pytest.approx(0.5, abs=1e-8)
        assert run.energy_error < 1e-7


def test_one_of_several_coordinates_of_a_joint_is_locked():
    """A rod that falls along its sleeve for 0.1 s, is held there, and is let go again."""
    m = ld.Mechanism("sleeve", gravity=(0, 0, -9.81))
    rod = m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
    m.add_joint("C", ld.Cylindrical(axis=(0, 0, 1)), m.ground, rod, at=(0, 0, 0))
    system = m.compile()
    events = [
        ld.events.At(0.1, "lock", action=ld.events.Lock("C.slide")),
        ld.events.At(0.2, "unlock", action=ld.events.Release("C.slide")),
    ]
    run = ld.simulate(system, system.state(v={"C.angle": 1.0}), (0, 0.3), events=events, progress=False)
    assert run.status == "finished", run.message
    np.testing.assert_allclose(run.path.q[-1], [0.3, -2 * 9.81 * 0.1**2 / 2], rtol=1e-9)
    assert "lock C_slide" in run.data.constraint


def test_coordinates_that_are_forced_and_too_few_behind_a_release_end_the_run_in_words():
    system = literature.closed().compile(cuts=["O4"])
    events = [ld.events.At(0.1, "open", action=ld.events.Release("O4"))]
    for method in (ld.Partition(independent=["a1"]), ld.Closure(independent=["a1"])):
        run = ld.simulate(system, system.state(*literature.START), (0, 0.2), events=events, formulation=method,
                          progress=False)  # fmt: skip
        assert run.status == "failed"
        assert "1 speeds, and 'three_rods' has 3 freedoms" in run.message
        assert "leave independent out" in run.message
        assert run.path.t[-1] < 0.1


def test_constraints_that_a_formulation_cannot_treat_end_the_run_in_words():
    """Closure refuses rows that hold velocities alone; a lock does not bring such, so they are brought here."""
    system = literature.closed().compile(cuts=["O4"])
    unsupported = ld.library.four_bar()
    unsupported.add_force(None, ld.forces.UserForce(function=lambda t, q, v, out: None, name="f"))
    method = ld.Closure()
    solver = ld.prepare(system, method, system.state(*literature.START))
    stepper = Stepper(system, solver, ld.integrators.DOP853(), "none", 2, 1e-8, 0.0)
    watched, recorder = watch(system, [], 2, 0.0, 1.0), Recorder(system, np.array([0.0]), stepper.sources, "none")
    journal = Journal(system, solver)
    context = RunContext(system, stepper, method, watched, 1.0, np.zeros(0), recorder, journal, {})
    with pytest.raises(ld.LoopdynError, match="closure cannot treat 'four_bar'"):
        context.enter(Phase(unsupported.compile()), system.state(*literature.START))


def test_locked_runs_are_saved_loaded_and_resumed(tmp_path, interrupt_at):
    system = two_bars()

    def simulate(folder=None):
        events = [
            ld.events.At(0.3, "lock", action=ld.events.Lock("B")),
            ld.events.At(0.9, "unlock", action=ld.events.Release("B")),
        ]
        return ld.simulate(system, system.state(q=[0.2, 0.7], v=[1.5, 4.0]), (0, 1), events=events, progress=False,
                           integrator=ld.integrators.RK4(step=0.01), checkpoint=folder)  # fmt: skip

    whole = simulate()
    whole.save(tmp_path / "run.nc")
    again = ld.load_run(tmp_path / "run.nc")
    assert again.events[0].impulse["B"] == whole.events[0].impulse["B"]
    np.testing.assert_array_equal(again.diagnostics.residual, whole.diagnostics.residual)
    interrupt_at(75)
    stopped = simulate(tmp_path / "run")
    assert stopped.status == "interrupted"
    assert len(stopped.events) == 1
    resumed = simulate(tmp_path / "run")
    np.testing.assert_array_equal(resumed.path.q, whole.path.q)
    assert resumed.events[0].impulse.multipliers == whole.events[0].impulse.multipliers


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (ld.events.Lock("X"), "no joint coordinate 'X'. Known: A, B"),
        (ld.events.Release("A"), r"is a tree joint.*compile\(cuts=\[\"A\""),
        (ld.events.Release("X"), "nothing called 'X' to release"),
    ],
)
def test_what_cannot_be_locked_or_released_is_said(action, words):
    system = two_bars()
    with pytest.raises(ld.LoopdynError, match=words):  # what can be known at the start is said there
        ld.simulate(
            system, system.state(), (0, 1), events=[ld.events.At(0.5, action=action)], progress=False
        ).raise_if_failed()


def test_a_rod_is_added_and_taken_away_again():
    """A rod between the end of bar two and the ground: a plastic impact, in which the impulse acts along the rod."""
    system, t = two_bars(), (0.3, 0.5)
    start = system.state(q=[0.2, 0.7], v=[1.5, 4.0])
    free = ld.simulate(system, start, (0, t[0]), rtol=1e-10, progress=False)
    q1, q2 = free.path.q[-1]
    tip = np.array([L1 * np.cos(q1) + L2 * np.cos(q1 + q2), L1 * np.sin(q1) + L2 * np.sin(q1 + q2)])
    post = np.array([2.0, 1.0])
    length = float(np.linalg.norm(tip - post))
    rod = ld.constraints.Distance("ground", "two", (2.0, 1.0, 0), (L1 + L2, 0, 0), length=length)
    events = [
        ld.events.At(t[0], "caught", action=ld.events.Add("rod", rod)),
        ld.events.At(t[1], "let go", action=ld.events.Release("rod")),
    ]
    run = ld.simulate(system, start, (0, 1), events=events, rtol=1e-10, progress=False)
    assert run.status == "finished", run.message
    hit = run.events[0]
    q1, q2 = hit.state.q
    J = np.array(
        [
            [-L1 * np.sin(q1) - L2 * np.sin(q1 + q2), -L2 * np.sin(q1 + q2)],
            [L1 * np.cos(q1) + L2 * np.cos(q1 + q2), L2 * np.cos(q1 + q2)],
        ]
    )
    along = (tip - post) / length
    row = along @ J
    c, I1, I2 = np.cos(q2), M1 * L1**2 / 3, M2 * L2**2 / 3
    coupled = I2 + M2 * L1 * L2 / 2 * c
    M = np.array([[I1 + M2 * L1**2 + I2 + M2 * L1 * L2 * c, coupled], [coupled, I2]])
    impulse = -(row @ hit.state.v) / (row @ np.linalg.solve(M, row))
    expected = hit.state.v + np.linalg.solve(M, row) * impulse
    # the tip is where it was found by the run in pieces, to its tolerance
    np.testing.assert_allclose(hit.after.v, expected, atol=1e-8)
    assert hit.impulse.multipliers["rod"] == pytest.approx(impulse, abs=1e-8)
    held = (run.path.t > t[0]) & (run.path.t < t[1])
    q = run.path.q[held]
    x = L1 * np.cos(q[:, 0]) + L2 * np.cos(q.sum(axis=1)) - post[0]
    y = L1 * np.sin(q[:, 0]) + L2 * np.sin(q.sum(axis=1)) - post[1]
    np.testing.assert_allclose(np.hypot(x, y), length, atol=1e-12)
    assert run.events[1].energy_loss == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (ld.events.Add("rod"), "nothing called 'rod' was released"),
        (ld.events.Add("A", ld.constraints.Coupler(terms={"A": 1, "B": 1})), "something called 'A' already"),
        (
            ld.events.Add("rod", ld.constraints.Distance("ground", "two", (9, 0, 0), (1, 0, 0), length=1)),
            "violate the new constraints",
        ),
    ],
)
def test_what_cannot_be_added_is_said(action, words):
    system = two_bars()
    run = ld.simulate(system, t_span=(0, 1), events=[ld.events.At(0.5, action=action)], progress=False)
    assert run.status == "failed"
    assert words in run.message
