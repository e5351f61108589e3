"""Orders of the integrators, measured on motions with a closed form, in angles and in quaternions.

The torque-free symmetric top (moments I, I, J about its own axes x, y, z) turns about its angular momentum L, which
is fixed in space, at the rate |L|/I, and about its own axis z at the rate (1 - J/I) w_z:

    R(t) = exp(t L/I) exp(t (1 - J/I) w_z e_z)       for R(0) = 1
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from tests.independent import first_derivative, second_derivative
from tests.linkages import linkage, pose

import loopdyn as ld

ACROSS, ALONG = 0.3, 0.5  # kg m^2
OMEGA = np.array([1.0, 0.7, 2.0])  # rad/s at the start, in body axes
GRAVITY = np.array([0.0, 0.0, -2.0])
OFFSET = np.array([0.3, -0.2, 0.1])  # of the mass centre from the joint
SPEED = np.array([0.4, 0.1, 1.0])  # of the mass centre at the start
SPAN = 2.0
G = 9.81


def attitude(t: float) -> np.ndarray:
    L = np.diag([ACROSS, ACROSS, ALONG]) @ OMEGA
    own = Rotation.from_rotvec([0.0, 0.0, t * (1.0 - ALONG / ACROSS) * OMEGA[2]])
    return (Rotation.from_rotvec(t * L / ACROSS) * own).as_matrix()


def top(kind: str) -> tuple[ld.System, ld.State]:
    """A top held at its mass centre, or thrown, with the joint beside the mass centre."""
    m = ld.Mechanism("top", gravity=tuple(GRAVITY))
    com = OFFSET if kind == "free" else np.zeros(3)
    m.add_body("top", ld.Inertia(mass=2.0, com=tuple(com), matrix=np.diag([ACROSS, ACROSS, ALONG]).tolist()))
    joint = ld.Free() if kind == "free" else ld.Spherical()
    m.add_joint("J", joint, m.ground, "top", at=(0, 0, 0))
    system = m.compile()
    velocity = SPEED - np.cross(OMEGA, OFFSET)
    return system, system.state(v=np.concatenate([OMEGA, velocity]) if kind == "free" else OMEGA)


def error_of_the_top(kind: str, integrator: ld.integrators.Integrator) -> float:
    system, state = top(kind)
    run = ld.simulate(
        system, state, (0, SPAN), t_eval=[SPAN], integrator=integrator, rtol=0.999, atol=1e6, progress=False
    )
    motion = ld.tree.body_motion(system, run.at(SPAN))
    R = attitude(SPAN)
    error = np.abs(motion.rotation[1] - R).max()
    if kind == "free":
        centre = OFFSET + SPAN * SPEED + 0.5 * SPAN**2 * GRAVITY
        error = max(error, np.abs(motion.position[1] + motion.rotation[1] @ OFFSET - centre).max())
    return float(error)


def measured(errors: list[float]) -> list[float]:
    return [float(np.log2(a / b)) for a, b in pairwise(errors)]


# steps small enough for the leading term of the error, large enough to stay above rounding
METHODS = [
    ("rk4", 4, lambda n: ld.integrators.RK4(step=SPAN / n), (20, 40, 80)),
    ("abm", 4, lambda n: ld.integrators.ABM(step=SPAN / n), (80, 160, 320)),
    ("generalized_alpha", 2, lambda n: ld.integrators.GeneralizedAlpha(step=SPAN / n), (100, 200, 400)),
    ("dp5", 5, lambda n: ld.integrators.DP5(longest=SPAN / n), (20, 40, 80)),
    ("dop853", 8, lambda n: ld.integrators.DOP853(longest=SPAN / n), (5, 10, 20)),
]


@pytest.mark.parametrize("kind", ["spherical", "free"])
@pytest.mark.parametrize(("order", "make", "numbers"), [m[1:] for m in METHODS], ids=[m[0] for m in METHODS])
def test_order_is_kept_on_quaternions(kind, order, make, numbers):
    errors = [error_of_the_top(kind, make(n)) for n in numbers]
    # the measured order approaches the true one from either side as steps shrink
    assert max(measured(errors)) > order - 0.4, errors
    assert errors[-1] < (1e-3 if order == 2 else 1e-5)  # of the order of 1


PERIOD = 2.367841947576237449303295  # s, of the pendulum released from the horizontal (elliptic functions)


@pytest.mark.filterwarnings(
    "ignore:the relative energy-balance error:loopdyn.errors.LoopdynWarning"
)  # the coarsest of the steps are meant to be too long
@pytest.mark.parametrize(("order", "make", "numbers"), [m[1:] for m in METHODS], ids=[m[0] for m in METHODS])
def test_order_is_kept_on_angles(order, make, numbers):
    """After half a period the pendulum is at rest on the other side."""
    system = ld.library.pendulum().compile()
    errors = []
    for n in numbers:
        scaled = make(n * SPAN / (0.5 * PERIOD))  # n steps in half a period
        run = ld.simulate(
            system, system.state(), (0, 0.5 * PERIOD), t_eval=[0.5 * PERIOD], integrator=scaled, rtol=0.999, atol=1e6,
            progress=False,
        )  # fmt: skip
        errors.append(abs(run.path.q[-1, 0] - np.pi))
    assert max(measured(errors)) > order - 0.4, errors


@pytest.mark.parametrize(
    ("make", "order"), [(ld.integrators.DP5, 4), (ld.integrators.DOP853, 7), (ld.integrators.RK4, 4)]
)
def test_dense_output_has_its_order(make, order):
    """Inside steps of one size the error falls with the order of the dense output."""
    system, state = top("spherical")
    errors = []
    for n in (10, 20):
        h = SPAN / n
        integrator = make(step=h) if make is ld.integrators.RK4 else make(longest=h)
        times = np.linspace(0.0, SPAN, 23)[1:]
        run = ld.simulate(system, state, (0, SPAN), t_eval=times, integrator=integrator, rtol=0.999, atol=1e6,
                          progress=False)  # fmt: skip
        found = run.poses()[1][:, 1]
        errors.append(max(np.abs(R - attitude(t)).max() for R, t in zip(found, times, strict=True)))
    assert measured(errors)[0] > order - 0.5, errors


def test_generalized_alpha_has_order_two_on_a_loop_with_redundant_rows():
    """Against theta1(0.5) of the spinning four-bar, tests/data/reference/four_bar/reference.csv."""
    from tests.literature.test_trajectories import reference

    expected = reference("four_bar/reference.csv", 0.5)["theta1"][-1] - 1.0
    system = ld.library.four_bar().compile()
    state = ld.assemble(system)
    errors = []
    for n in (100, 200, 400):
        run = ld.simulate(
            system,
            state,
            (0, 0.5),
            t_eval=[0.5],
            integrator=ld.integrators.GeneralizedAlpha(step=0.5 / n),
            progress=False,
        )
        errors.append(abs(run.path.q[-1, 0] - expected))
    assert max(measured(errors)) > 1.8, errors
    assert run.largest_residual < 1e-10


def test_reactions_converge_with_the_order_of_the_motion():
    """Force on the crank at A0 at 0.5 s, Newton-Euler from the closed form; Runge-Kutta of order 4."""
    from tests.literature.test_trajectories import reference

    row = reference("four_bar/reference_reactions.csv", 0.5)
    system = ld.library.four_bar().compile()
    errors = []
    for n in (50, 100, 200):
        run = ld.simulate(
            system,
            ld.assemble(system),
            (0, 0.5),
            t_eval=[0.5],
            integrator=ld.integrators.RK4(step=0.5 / n),
            progress=False,
        )
        found = run.data["wrench"].sel(joint="A").values[-1, 3:5]
        errors.append(float(np.abs(found - [row["FOx"][-1], row["FOy"][-1]]).max()))
    assert max(measured(errors)) > 3.6, errors


# ------------------------------------------------------------------ reactions of a four-bar over a turn of its crank

LENGTHS, MASSES, ANGLE, RATE, CYCLE = (1.0, 0.3, 0.9, 0.6), (1.0, 2.0, 1.5), 0.7, 9.0, 0.72
SAMPLES = 9  # times over the cycle, all of them ends of steps


def links(x: float) -> np.ndarray:
    """Centre x, y and angle of crank, coupler and rocker at a crank angle, one row each."""
    A, B, C, D = pose(LENGTHS, x, 1)
    angles = (x, np.arctan2(*(C - B)[::-1]), np.arctan2(*(C - D)[::-1]))  # without jumps: only the crank goes round
    return np.array([[*((p + q) / 2), a] for p, q, a in zip((A, B, D), (B, C, C), angles, strict=True)])


def inertias() -> np.ndarray:
    return np.array([[m, m, m * length**2 / 12] for m, length in zip(MASSES, LENGTHS[1:], strict=True)])


def slope_and_bend(x: float) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivative of `links`."""
    move = lambda s: links(x + s)  # noqa: E731
    return first_derivative(move, 2e-3), second_derivative(move, 2e-3)


def crank_acceleration(x: float, w: float) -> float:
    """Lagrange's equation of a mechanism with one freedom: I a + (sum of m c' c'') w^2 + weight = 0."""
    d, dd = slope_and_bend(x)
    return float(-((inertias() * d * dd).sum() * w * w + G * np.dot(MASSES, d[:, 1])) / (inertias() * d * d).sum())


def pin_forces(x: float, w: float) -> np.ndarray:
    """Forces (4, 2) in A, B, C, D on crank, coupler, rocker, rocker: equations of Newton and Euler of the rods."""
    pins = pose(LENGTHS, x, 1)
    d, dd = slope_and_bend(x)
    needed = inertias() * (d * crank_acceleration(x, w) + dd * w * w) + np.outer(MASSES, [0.0, G, 0.0])
    # body, pin, sign: the force of a joint acts on its child, and in the opposite sense on its parent
    on = [(0, 0, 1), (0, 1, -1), (1, 1, 1), (1, 2, -1), (2, 2, 1), (2, 3, 1)]
    equations = np.zeros((9, 8))
    for body, pin, sign in on:
        arm = pins[pin] - links(x)[body, :2]
        equations[3 * body : 3 * body + 3, 2 * pin : 2 * pin + 2] += sign * np.array(
            [[1, 0], [0, 1], [-arm[1], arm[0]]]
        )
    return np.linalg.lstsq(equations, needed.ravel(), rcond=None)[0].reshape(4, 2)


@pytest.fixture(scope="module")
def cycle() -> tuple[np.ndarray, np.ndarray]:
    """Times, and pin forces (times, 4, 2) over a turn of the crank; good to 1e-9, as the differences are."""
    times = np.linspace(0.0, CYCLE, SAMPLES)
    found = solve_ivp(lambda t, y: [y[1], crank_acceleration(*y)], (0.0, CYCLE), [ANGLE, RATE], "DOP853", times,
                      rtol=1e-10, atol=1e-11)  # fmt: skip
    assert found.y[0, -1] - ANGLE > 2 * np.pi
    return times, np.array([pin_forces(*y) for y in found.y.T])


# steps in the cycle, multiples of the number of intervals between the samples
OVER_A_CYCLE = [
    ("rk4", 4, lambda h: ld.integrators.RK4(step=h), (64, 128, 256)),
    ("abm", 4, lambda h: ld.integrators.ABM(step=h), (256, 512, 1024)),
    ("generalized_alpha", 2, lambda h: ld.integrators.GeneralizedAlpha(step=h), (64, 128)),
    ("dp5", 5, lambda h: ld.integrators.DP5(longest=h), (64, 128, 256)),
    ("dop853", 8, lambda h: ld.integrators.DOP853(longest=h), (24, 48)),
]


@pytest.mark.parametrize(("order", "make", "numbers"), [m[1:] for m in OVER_A_CYCLE], ids=[m[0] for m in OVER_A_CYCLE])
def test_reactions_over_a_cycle_converge_at_the_order_of_the_integrator(cycle, order, make, numbers):
    """The worst force of all four bearings at all times of the cycle, not only positions at its end."""
    times, exact = cycle
    system = linkage(LENGTHS, ANGLE, 1, MASSES)[0].compile()
    state = ld.assemble(system, v={"A": RATE})
    errors = []
    for n in numbers:
        run = ld.simulate(system, state, (0, CYCLE), t_eval=times, integrator=make(CYCLE / n), rtol=0.999, atol=1e6,
                          progress=False)  # fmt: skip
        loads = run.bearings()
        found = np.array([loads.load(joint)[0][:, :2] for joint in "ABCD"]).transpose(1, 0, 2)
        errors.append(np.abs(found - exact).max())
    assert max(measured(errors)) > order - 0.4, errors
    assert errors[-1] < (1e-2 if order == 2 else 1e-4) * np.abs(exact).max(), errors


@pytest.mark.parametrize("drift", ["projection", "none"])
def test_projection_keeps_the_order_of_rk4_down_to_rounding(drift):
    """theta1(0.5) of the spinning four-bar, tests/data/reference/four_bar/reference.csv, which has 15 digits.

    With projection the order comes down to 4 from above (4.8 ... 4.4) and without from 4.2; below an error of 1e-13,
    some last places of the angle itself (5 rad), neither has an order: what is lost there is lost to rounding.
    """
    from tests.literature.test_trajectories import reference

    expected = reference("four_bar/reference.csv", 0.5)["theta1"][-1] - 1.0
    system = ld.library.four_bar().compile()
    state, k = ld.assemble(system), system.coordinates.index("A")
    errors = []
    for n in (200, 400, 800, 6400):
        run = ld.simulate(
            system,
            state,
            (0, 0.5),
            t_eval=[0.5],
            integrator=ld.integrators.RK4(step=0.5 / n),
            drift=drift,
            progress=False,
        )
        errors.append(abs(run.path.q[-1, k] - expected))
    assert min(measured(errors[:3])) > 3.95, errors
    assert errors[-1] < 1e-13


# ------------------------------------------------------------------------------- a spatial loop, by its own equation


class Rssr:
    """The RSSR of the library by hand: m(A) A'' + m'(A) A'^2 / 2 + V'(A) = 0.

    B turns about the first axis. C turns about the second one, at D, and stays L away from B, which makes the angle of
    the rocker the solution of p cos + q sin = k. Rods are cylinders. At the start the coupler does not spin about its
    line, and nothing makes it: a symmetric body on two balls keeps its spin.
    """

    CRANK, ROCKER = 0.15, 0.4
    FIRST, SECOND = np.array([0.0, 0.3, 1.0]) / np.hypot(0.3, 1.0), np.array([1.0, 0.2, 0.0]) / np.hypot(1.0, 0.2)
    D, B0, C0 = np.array([0.3, 0.6, -0.1]), np.array([CRANK, 0.0, 0.0]), np.array([0.0, 0.0, ROCKER])
    L = float(np.linalg.norm(D + C0 - B0))

    @staticmethod
    def turned(axis, angle, arm):
        """An arm square to an axis, turned about it."""
        return np.cos(angle) * arm + np.sin(angle) * np.cross(axis, arm)

    @staticmethod
    def about_middle(mass, length, radius):
        return mass * (3 * radius**2 + length**2) / 12

    def rocker(self, A):
        """Place of B, and angle of the rocker: zero with A."""
        B = self.turned(self.FIRST, A, self.B0)
        d = self.D - B
        p, q = 2 * (d @ self.C0), 2 * (d @ np.cross(self.SECOND, self.C0))
        k = self.L**2 - d @ d - self.ROCKER**2
        return B, np.arctan(q / p) + (np.pi if p.real < 0 else 0.0) + np.arccos(k / np.sqrt(p * p + q * q))

    def inertia_and_height(self, A):
        """m(A), from the kinetic energy m A'^2 / 2, and V(A)."""
        B, angle = self.rocker(A)
        C = self.D + self.turned(self.SECOND, angle, self.C0)
        to_B, to_C = (
            self.turned(self.FIRST, A + np.pi / 2, self.B0),
            self.turned(self.SECOND, angle + np.pi / 2, self.C0),
        )
        ratio = ((C - B) @ to_B) / ((C - B) @ to_C)  # of the speeds of rocker and crank
        vB, vC = to_B, ratio * to_C
        turning, middle = (vC - vB) / self.L, (vB + vC) / 2
        of_crank = self.about_middle(0.5, self.CRANK, 0.02) + 0.5 * (self.CRANK / 2) ** 2
        of_rocker = self.about_middle(0.8, self.ROCKER, 0.02) + 0.8 * (self.ROCKER / 2) ** 2
        of_coupler = 1.0 * (middle @ middle) + self.about_middle(1.0, self.L, 0.015) * (turning @ turning)
        heights = 0.5 * B[2] / 2 + 1.0 * (B[2] + C[2]) / 2 + 0.8 * (self.D[2] + C[2]) / 2
        return of_crank + of_rocker * ratio**2 + of_coupler, G * heights

    def __call__(self, t, y):
        h = 1e-30  # complex step: derivatives without differences
        m, V = self.inertia_and_height(y[0] + 1j * h)
        return [y[1], -(0.5 * m.imag * y[1] ** 2 + V.imag) / (h * m.real)]


@pytest.mark.parametrize(("drift", "least"), [("projection", 4.0), ("none", 3.85)])
def test_order_of_rk4_on_a_spatial_loop_is_four_down_to_rounding(drift, least):
    """Against SciPy's DOP853 on the equation by hand, good to 1e-13: errors go from 1e-7 to 1e-12 of 3.7 rad.

    With projection the order comes down to 4 from above (4.4 ... 4.1). Without, the error changes its sign between 50
    and 100 steps, where a quotient of two errors says nothing (1.6, 3.3), and the order then comes up to 4 from below.
    """
    span = 0.5
    found = solve_ivp(Rssr(), (0.0, span), [0.0, 5.0], "DOP853", rtol=1e-13, atol=1e-14)
    system = ld.library.rssr().compile()
    state, k = ld.assemble(system), system.coordinates.index("A")
    errors = []
    for n in (400, 800, 1600, 3200):
        run = ld.simulate(
            system,
            state,
            (0, span),
            t_eval=[span],
            integrator=ld.integrators.RK4(step=span / n),
            drift=drift,
            progress=False,
        )
        errors.append(abs(run.path.q[-1, k] - found.y[0, -1]))
    assert min(measured(errors)) > least, errors
    assert errors[-1] < 1e-11
