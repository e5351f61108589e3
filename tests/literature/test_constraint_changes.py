"""Deletion and addition of constraints, named by Blajer, Schiehlen and Schirm (1993): a four-bar opened and locked.

Reference values were computed independently (equations of motion in the three relative angles, two integrators).
Angles are measured from +y towards +x; O4 is at (1, 0).
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import loopdyn as ld

LENGTHS, MASSES = (0.4, 0.9, 0.8), (1.0, 2.0, 1.5)
START = ([0.7, 0.2897609626433363, 2.1643225063775535], [1.3, -1.7423131575154485, 0.6663492845528021])
AT_03 = [1.8700863180943266, -1.5356121676256314, 2.3924130209588057, 4.7760151064923315, -7.131555946472469,
         -1.1487109751730271]  # fmt: skip
BEFORE_LOCK = [3.6092831660867293, -2.966762708639019, 1.7460126706189358, 14.145301003570326, -6.708302451678773,
               -4.761149446445976]  # fmt: skip
AFTER_LOCK = [3.6092831660867293, -2.966762708639019, 1.7460126706189358, 4.395678173626136, 0.0, -0.10682392839172028]
AT_08 = [5.829452185228544, -2.966762708639019, -0.47388022852663153, 8.809302519757201, 0.0, -10.862373143422065]
IMPULSE, ENERGY_LOSS = 3.151545809584218, 10.57076124050587

TOLERANCE = 1e-8  # of trajectories, as the reference states; impulse and loss follow from the state before


def chain() -> ld.Mechanism:
    """Three rods in a row, stretched along y at the reference pose."""
    m = ld.Mechanism("three_rods", gravity=(0, -9.81, 0))
    y, parent = 0.0, m.ground
    for k, (length, mass) in enumerate(zip(LENGTHS, MASSES, strict=True), 1):
        m.add_body(f"link{k}", ld.Inertia.rod(mass=mass, start=(0, y, 0), end=(0, y + length, 0)))
        m.add_joint(f"a{k}", ld.Revolute(axis=(0, 0, -1)), parent, f"link{k}", at=(0, y, 0))
        y, parent = y + length, f"link{k}"
    return m


def closed() -> ld.Mechanism:
    m = chain()
    pin, end = ld.Revolute(axis=(0, 0, -1)), ld.Frame(position=(0, sum(LENGTHS), 0))
    m.add_joint("O4", pin, m.ground, "link3", parent_frame=ld.Frame(position=(1, 0, 0)), child_frame=end)
    return m


def run(system: ld.System, state: ld.State, until: float) -> ld.State:
    solve = ld.prepare(system, "relative", state)

    def rhs(t, y):
        return np.concatenate([y[3:], solve(t, y[:3], y[3:]).a])

    y = np.concatenate([state.q, state.v])
    end = solve_ivp(rhs, (state.t, until), y, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    return ld.State(until, end[:3], end[3:])


def vector(state: ld.State) -> np.ndarray:
    return np.concatenate([state.q, state.v])


@pytest.fixture(scope="module")
def phases() -> dict:
    four_bar = closed().compile(cuts=["O4"])
    at_03 = run(four_bar, four_bar.state(*START), 0.3)
    opened = chain().compile()
    release = ld.analyses.reconnect(four_bar, opened, at_03)
    before = run(opened, release.state, 0.5)
    locked = chain()
    locked.add_driver("lock", "a2", float(before.q[1]))
    locked = locked.compile()
    lock = ld.analyses.reconnect(opened, locked, before)
    return {"at_03": at_03, "release": release, "before": before, "lock": lock, "at_08": run(locked, lock.state, 0.8)}


def test_the_closed_four_bar_follows_the_reference(phases):
    np.testing.assert_allclose(vector(phases["at_03"]), AT_03, atol=TOLERANCE)


def test_deleting_a_joint_leaves_the_state_continuous(phases):
    np.testing.assert_allclose(vector(phases["release"].state), vector(phases["at_03"]), atol=1e-12)
    assert abs(phases["release"].energy_loss) < 1e-11
    np.testing.assert_allclose(vector(phases["before"]), BEFORE_LOCK, atol=TOLERANCE)


def test_locking_a_joint_is_an_impulse_with_carnots_loss_of_energy(phases):
    lock = phases["lock"]
    np.testing.assert_allclose(vector(lock.state), AFTER_LOCK, atol=TOLERANCE)
    assert lock.impulse.multipliers["lock"] == pytest.approx(IMPULSE, abs=TOLERANCE)
    assert lock.energy_loss == pytest.approx(ENERGY_LOSS, abs=TOLERANCE)


def test_the_locked_chain_follows_the_reference(phases):
    np.testing.assert_allclose(vector(phases["at_08"]), AT_08, atol=TOLERANCE)
