"""Machines with one-sided contacts in plain NumPy and SciPy: references for stops, backlash, contacts and impacts.

Nothing here uses loopdyn. Each section derives its equations; the tests of this file's numbers are in
tests/unit/test_one_sided_references.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

Array = np.ndarray
GRAVITY = 9.81

# ------------------------------------------------------------------------------------------------- bouncing ball
# A fall from h takes sqrt(2 h/g), and the flight after bounce k takes 2 e^k sqrt(2 h/g): a geometric series.


def bouncing_ball(height: float, e: float, g: float = GRAVITY, count: int = 20) -> tuple[Array, Array, float]:
    """Times of the impacts, heights of the rebounds after them, and the time at which the ball has come to rest."""
    fall = np.sqrt(2.0 * height / g)
    k = np.arange(count)
    # time of impact k: fall (1 + 2 (e + ... + e^k))
    sums = np.array([sum(e**j for j in range(1, n + 1)) for n in k])
    rest = np.inf if e == 1.0 else fall * (1.0 + e) / (1.0 - e)
    return fall * (1.0 + 2.0 * sums), height * e ** (2 * (k + 1)), rest


# --------------------------------------------------------------------------------------------------------- Housner
# A block of half width b = R sin(alpha) and half height R cos(alpha) rocks about its corners; I = 4/3 m R^2 about
# either. The corner that strikes takes an impulse, the other one lets go: angular momentum about the new corner is that
# about it before, I w - 2 m R b sin(alpha) w.


def housner_ratio(alpha: float) -> float:
    """Angular velocity after over that before an impact of a slender block: 1 - 3/2 sin^2(alpha)."""
    return float(1.0 - 1.5 * np.sin(alpha) ** 2)


def rocking_block(R: float, alpha: float, angle: float, count: int, g: float = GRAVITY) -> tuple[Array, Array]:
    """Times of the first impacts of a block released at rest at `angle`, and speeds |w| after them.

    I theta'' = -m g R sin(alpha - theta) about the corner, for theta > 0; a quarter of a period by energy, integrated.
    """
    p2 = 3.0 * g / (4.0 * R)
    times, speeds, t, theta, w = [], [], 0.0, angle, 0.0
    for _ in range(count):

        def falls(_t: float, y: Array) -> Array:
            return np.array([y[1], -p2 * np.sin(alpha - y[0])])

        def lands(_t: float, y: Array) -> float:
            return float(y[0])

        lands.terminal, lands.direction = True, -1.0  # type: ignore[attr-defined]
        run = solve_ivp(falls, (0, 100), [theta, w], events=lands, rtol=1e-12, atol=1e-14, method="DOP853")
        t += float(run.t_events[0][0])
        w = abs(float(run.y_events[0][0][1])) * housner_ratio(alpha)
        theta = 0.0
        times.append(t)
        speeds.append(w)
    return np.array(times), np.array(speeds)


# ------------------------------------------------------------------------------------------------- cam and follower
# Eccentric circle of eccentricity e and radius R, its axis at the origin, turning at omega; flat follower of mass m on
# y, pushed down by gravity and a spring of stiffness k that has the force F0 at the lowest position y = R - e. While
# they touch, y = R + e s with s = sin(omega t), y'' = -e omega^2 s, and the contact force is
#     N = m y'' + m g + F0 + k e (1 + s) = m g + F0 + k e + e s (k - m omega^2),
# linear in s: it first vanishes at s = 1, for m e omega^2 = F0 + m g + 2 k e. Free, m y'' = -m g - F0 - k (y - R + e).


@dataclass(frozen=True)
class Cam:
    """Numbers of the cam, SI."""

    e: float = 0.01
    R: float = 0.03
    m: float = 0.5
    k: float = 2000.0
    F0: float = 20.0
    g: float = GRAVITY

    def lift_off_speed(self) -> float:
        """Speed in rad/s above which the follower leaves the cam."""
        return float(np.sqrt((self.F0 + self.m * self.g + 2.0 * self.k * self.e) / (self.m * self.e)))

    def force(self, t: float, omega: float) -> float:
        """Contact force while they touch."""
        s = np.sin(omega * t)
        return float(self.m * self.g + self.F0 + self.k * self.e + self.e * s * (self.k - self.m * omega**2))

    def events(self, omega: float, until: float) -> list[tuple[float, str]]:
        """Times of separation and landing of a run from contact at t = 0, with restitution 0.

        Flights are in closed form; landings are the first sign change of the gap among 4000 points a turn, then a root
        to rounding. After a landing the follower stays if the force is positive there.
        """
        found: list[tuple[float, str]] = []
        t, step = 0.0, 2.0 * np.pi / omega / 4000.0
        while t < until:
            t = _first_root(lambda x: self.force(x, omega), t, step, until)
            if not t < until:
                break
            found.append((t, "separation"))
            gap = self._flight(t, omega)
            t = _first_root(lambda x, gap=gap: -gap(x), t + 1e-3 * step, step, until, sign=-1.0)
            if not t < until:
                break
            found.append((t, "landing"))
            assert self.force(t, omega) > 0.0, "it would leave at once: choose another speed"
        return found

    def _flight(self, start: float, omega: float) -> Callable[[float], float]:
        """Gap after a separation at `start`."""
        w0 = np.sqrt(self.k / self.m)
        rest = self.R - self.e - (self.m * self.g + self.F0) / self.k
        y, v = self.R + self.e * np.sin(omega * start), self.e * omega * np.cos(omega * start)

        def gap(t: float) -> float:
            tau = w0 * (t - start)
            height = rest + (y - rest) * np.cos(tau) + v / w0 * np.sin(tau)
            return float(height - self.R - self.e * np.sin(omega * t))

        return gap


def _first_root(f: Callable[[float], float], start: float, step: float, until: float, sign: float = 1.0) -> float:
    """First time after `start` at which f falls through zero (rises, for sign -1); infinity if there is none."""
    a, fa = start, f(start)
    while a < until:
        b = a + step
        fb = f(b)
        if sign * fa > 0.0 >= sign * fb:
            return float(brentq(f, a, b, xtol=1e-15, rtol=8.9e-16))
        a, fa = b, fb
    return np.inf


# ----------------------------------------------------------------------------------------------------- Geneva drive
# Four slots: the pin at radius a enters radially, so the centres are d = a sqrt(2) apart; lambda = a/d. With the crank
# at alpha from the line of centres and the wheel's slot at beta,
#     tan beta = lambda sin alpha/(1 - lambda cos alpha),
#     beta'  = omega   lambda (cos alpha - lambda)/D,          D = 1 + lambda^2 - 2 lambda cos alpha,
#     beta'' = -omega^2 lambda (1 - lambda^2) sin alpha/D^2,
# for |alpha| <= 45 degrees; the wheel dwells otherwise. beta'' is extremal where d beta''/d alpha = 0:
#     cos alpha = -K + sqrt(K^2 + 2),  K = (1 + lambda^2)/(4 lambda).

LAMBDA = 1.0 / np.sqrt(2.0)
PIN_IN_SLOT = np.pi / 4.0


def geneva(alpha: Array) -> tuple[Array, Array, Array]:
    """Angle of the engaged wheel and two derivatives by the crank's angle, from the line of centres."""
    D = 1.0 + LAMBDA**2 - 2.0 * LAMBDA * np.cos(alpha)
    beta = np.arctan2(LAMBDA * np.sin(alpha), 1.0 - LAMBDA * np.cos(alpha))
    return beta, LAMBDA * (np.cos(alpha) - LAMBDA) / D, -LAMBDA * (1.0 - LAMBDA**2) * np.sin(alpha) / D**2


def geneva_peak() -> tuple[float, float]:
    """Angle of the crank at the peak acceleration, and the acceleration over omega^2."""
    K = (1.0 + LAMBDA**2) / (4.0 * LAMBDA)
    alpha = float(np.arccos(-K + np.sqrt(K**2 + 2.0)))
    return alpha, float(-geneva(np.array(alpha))[2])


def geneva_indexing(t: Array, omega: float, start: float) -> Array:
    """Angle through which the wheel has been turned at times t, by a crank at start + omega t: 90 degrees a turn.

    The wheel turns against the crank; the angle is counted in its own direction. `start` lies in the dwell.
    """
    crank = start + omega * np.asarray(t)
    turns = np.floor((crank + np.pi) / (2.0 * np.pi))
    alpha = crank - 2.0 * np.pi * turns
    engaged = geneva(np.clip(alpha, -PIN_IN_SLOT, PIN_IN_SLOT))[0]
    begun = np.floor((start + np.pi) / (2.0 * np.pi))
    first = PIN_IN_SLOT if start - 2.0 * np.pi * begun > 0.0 else -PIN_IN_SLOT  # where the wheel was at the start
    return engaged + np.pi / 2.0 * (turns - begun) - first


def geneva_wrong_entry(a: float, inertia: float, omega: float, alpha: float, error: float) -> tuple[float, float]:
    """Speed of the wheel after the pin has struck a slot that is out of place, and the impulse; restitution 0.

    The pin, driven at a speed that nothing changes, is at `alpha`, in the mouth of a slot whose direction is turned by
    `error` from that to the pin. The wall passes through the pin at the distance L from the wheel's axis, across the
    unit vector n: the wheel's speed there L cos(error) w2 becomes the pin's a omega n . t.
    """
    centre = np.array([np.sqrt(2.0) * a, 0.0])
    pin, along = a * np.array([np.cos(alpha), np.sin(alpha)]), a * omega * np.array([-np.sin(alpha), np.cos(alpha)])
    r = pin - centre
    L, angle = np.hypot(*r), np.arctan2(r[1], r[0]) + error
    n = np.array([-np.sin(angle), np.cos(angle)])
    lever = r[0] * n[1] - r[1] * n[0]  # = L cos(error)
    w2 = float(along @ n / lever)
    assert abs(lever - L * np.cos(error)) < 1e-12 * L
    return w2, float(inertia * w2 / lever)


# ---------------------------------------------------------------------------------------------------------- ratchet
# The wheel, with its axis at the origin, carries the torque T; the pawl turns freely about its pivot and touches a
# tooth with its tip. Without friction the force on the wheel is F n at the tip, with T + F (tip x n) = 0. The
# tip pushes the pawl by -F n, which turns it into the tooth if (tip - pivot) x (-n) has the sign of the spring; it
# holds at any load then.


def ratchet(torque: float, tip: Array, normal: Array, pivot: Array) -> tuple[float, float]:
    """Force on the wheel along `normal` (on the wheel), and the moment about the pivot that it puts on the pawl."""
    n = normal / np.hypot(*normal)
    force = -torque / (tip[0] * n[1] - tip[1] * n[0])
    arm = tip - pivot
    return float(force), float(-force * (arm[0] * n[1] - arm[1] * n[0]))


# ----------------------------------------------------------------------------------------------------- knuckle press
# Two links of length L without mass, the upper pivot at the top, the knee pushed sideways by a force P, the ram of mass
# m on the vertical below: at the angle theta of both links from the vertical the ram is at 2 L cos(theta) below the
# pivot, the knee at L sin(theta) to the side. Virtual work: P acts on L cos(theta) dtheta, gravity and the work-piece's
# F (up) on d(2 L cos theta) = -2 L sin(theta) dtheta:
#     4 m L^2 s (s theta'' + c theta'^2) = P_theta + (F - m g) 2 L s,   P_theta = -P L c   (P towards the line)
# The work-piece is met at the depth y0 and resists as k (depth - y0), not otherwise.


@dataclass(frozen=True)
class Press:
    """Numbers of the press, SI. Both links are bars of mass `bar`, which keep the equation regular at the bottom."""

    L: float = 0.3
    m: float = 20.0
    bar: float = 4.0
    P: float = 400.0
    depth: float = 0.59
    k: float = 4e6
    theta: float = 0.6

    def mass(self, theta: float) -> tuple[float, float]:
        """Generalised inertia and its derivative by theta.

        Upper bar: bar L^2/3. Lower bar, centre at (L/2 sin, 3/2 L cos): bar L^2 (1/12 + cos^2/4 + 9/4 sin^2).
        """
        s, c = np.sin(theta), np.cos(theta)
        value = self.bar * self.L**2 * (1 / 3 + 1 / 12 + c * c / 4 + 9 / 4 * s * s) + 4 * self.m * self.L**2 * s * s
        return float(value), float(self.bar * self.L**2 * 4 * s * c + 8 * self.m * self.L**2 * s * c)

    def resists(self, theta: float) -> float:
        """Force of the work-piece."""
        return float(self.k * max(0.0, 2 * self.L * np.cos(theta) - self.depth))

    def run(self, times: Array) -> Array:
        """theta and its rate at `times`, from rest; integrated from contact to contact. Gravity acts downward."""

        def f(_t: float, y: Array, touching: bool) -> Array:
            s, c = np.sin(y[0]), np.cos(y[0])
            inertia, slope = self.mass(float(y[0]))
            force = self.k * (2 * self.L * c - self.depth) if touching else 0.0
            load = (force - self.m * GRAVITY) * 2 * self.L * s - self.P * self.L * c
            load -= self.bar * GRAVITY * (self.L / 2 * s + 3 / 2 * self.L * s)
            return np.array([y[1], (load - 0.5 * slope * y[1] ** 2) / inertia])

        def meets(_t: float, y: Array, _touching: bool) -> float:
            return float(2 * self.L * np.cos(y[0]) - self.depth)

        meets.terminal = True  # type: ignore[attr-defined]
        t, y, touching, found = float(times[0]), np.array([self.theta, 0.0]), False, []
        while True:
            meets.direction = -1.0 if touching else 1.0  # type: ignore[attr-defined]
            rest = times[times >= t]
            run = solve_ivp(
                f, (t, times[-1]), y, args=(touching,), events=meets, t_eval=rest, rtol=1e-11, atol=1e-13,
                method="DOP853",
            )  # fmt: skip
            found.append(run.y[:, run.t < (run.t_events[0][0] if len(run.t_events[0]) else np.inf)])
            if run.status != 1:
                return np.hstack(found)[:, : len(times)]
            t, y, touching = float(run.t_events[0][0]), run.y_events[0][0], not touching


# ---------------------------------------------------------------------------------------------------------- backlash
# Two gears with the inertias I1 and I2, ratio n (the first turns n times as fast), and the play b of the first against
# the second: x = phi1 - n phi2 stays within -b/2 ... b/2. The torque T on the first is constant between reversals.
# Free, phi1'' = T/I1 and phi2'' = 0; in contact both move with phi1'' = T/(I1 + I2/n^2). An impact without rebound
# keeps the angular momentum I1 phi1' + I2/n phi2' and makes phi1' = n phi2'. The contact opens when the torque turns
# away from it: with nothing else on the second gear, at the reversal itself.


@dataclass(frozen=True)
class Gears:
    """Numbers of the pair, SI."""

    I1: float = 0.02
    I2: float = 0.3
    n: float = 3.0
    b: float = 0.004
    T: float = 0.5
    period: float = 0.4  # of the torque: T for the first half, -T for the second

    def events(self, count: int) -> list[tuple[float, str, int, float, float]]:
        """First events (time, "contact" or "separation", flank, phi1', phi2') from rest in the middle of the play.

        Between events everything is a quadratic of time: times are its roots. Restitution 0 stays in contact.
        """
        t, x, v1, v2 = 0.0, 0.0, 0.0, 0.0
        flank, found, k = 0, [], 0  # flank: -1, 0, 1; k: half periods that have begun
        while len(found) < count:
            T = self.T if k % 2 == 0 else -self.T
            until = (k + 1) * self.period / 2.0
            if flank * T > 0:  # stays in contact to the end of the half period
                v1 += T / (self.I1 + self.I2 / self.n**2) * (until - t)
                v2, t, k = v1 / self.n, until, k + 1
                found.append((t, "separation", flank, v1, v2))
                flank = 0
                continue
            reached = self._reached(x, v1 - self.n * v2, T / self.I1)
            if t + reached >= until:
                tau = until - t
                x += (v1 - self.n * v2) * tau + 0.5 * T / self.I1 * tau**2
                v1, t, k = v1 + T / self.I1 * tau, until, k + 1
                continue
            t, v1 = t + reached, v1 + T / self.I1 * reached
            v1 = (self.I1 * v1 + self.I2 / self.n * v2) / (self.I1 + self.I2 / self.n**2)
            v2, flank = v1 / self.n, 1 if T > 0 else -1
            x = flank * self.b / 2.0
            found.append((t, "contact", flank, v1, v2))
        return found

    def _reached(self, x: float, v: float, a: float) -> float:
        """First time > 0 at which x + v t + a t^2/2 = +-b/2; leaves the end of the play on which it is."""
        times = []
        for end in (-self.b / 2.0, self.b / 2.0):
            roots = np.roots([0.5 * a, v, x - end])
            times += [float(r.real) for r in roots if abs(r.imag) < 1e-14 and r.real > 1e-9]
        return min(times, default=np.inf)


# ------------------------------------------------------------------------------------- slider-crank with play of a pin
# The crank turns at omega: A = r (cos, sin)(omega t). The rod (mass m, length L, centre at l from A, inertia I about
# it) has the direction psi; its pin B = A + L (cos psi, sin psi) is in a hole of the slider (mass M, x on y = 0) with
# the radial play c: gap = c - |B - X|, normal u = (B - X)/|B - X|. With E = I + m l^2, free:
#     E psi'' = -m l (-sin psi Ax'' + cos psi (Ay'' + g)),   M x'' = 0.
# Impacts: rows of the gap by (psi, x): G = (-u . L (-sin psi, cos psi), ux); the impulse is Z = -(1 + e) g'/(G W G^T)
# with W = diag(1/E, 1/M), where g' has the velocity of A too.


@dataclass(frozen=True)
class Slider:
    """Numbers of the mechanism, SI."""

    r: float = 0.05
    L: float = 0.2
    lc: float = 0.08
    m: float = 0.4
    I: float = 0.0016
    M: float = 0.6
    c: float = 1e-4
    omega: float = 20.0
    g: float = GRAVITY
    e: float = 0.5
    start: float = 0.3  # angle of the crank

    def at_start(self) -> Array:
        """psi, x and their rates with the pin in the middle of the hole and at rest in it."""
        a = self.start
        psi = -np.arcsin(self.r / self.L * np.sin(a))
        rate = -self.r * self.omega * np.cos(a) / (self.L * np.cos(psi))
        x = self.r * np.cos(a) + self.L * np.cos(psi)
        return np.array([psi, x, rate, -self.r * self.omega * np.sin(a) - self.L * np.sin(psi) * rate])

    def pin(self, t: float, y: Array) -> tuple[Array, Array]:
        """Pin relative to the hole, and its velocity."""
        a, psi, rate = self.start + self.omega * t, y[0], y[2]
        e = np.array([self.r * np.cos(a) + self.L * np.cos(psi) - y[1], self.r * np.sin(a) + self.L * np.sin(psi)])
        v = self.r * self.omega * np.array([-np.sin(a), np.cos(a)]) + self.L * rate * np.array(
            [-np.sin(psi), np.cos(psi)]
        )
        return e, v - [y[3], 0.0]

    def free(self, t: float, y: Array) -> Array:
        """Rates of the state between impacts."""
        a, psi = self.start + self.omega * t, y[0]
        A2 = -self.r * self.omega**2 * np.array([np.cos(a), np.sin(a)])
        torque = -self.m * self.lc * (-np.sin(psi) * A2[0] + np.cos(psi) * (A2[1] + self.g))
        return np.array([y[2], y[3], torque / (self.I + self.m * self.lc**2), 0.0])

    def impacts(self, count: int = 3) -> list[tuple[float, Array, Array, float]]:
        """Time, state before, state after, and impulse of the first impacts."""

        def gap(t: float, y: Array) -> float:
            return float(self.c - np.hypot(*self.pin(t, y)[0]))

        gap.terminal, gap.direction = True, -1.0  # type: ignore[attr-defined]
        t, y, found = 0.0, self.at_start(), []
        for _ in range(count):
            run = solve_ivp(
                self.free, (t, t + 10.0), y, events=gap, rtol=1e-13, atol=1e-16, method="DOP853", max_step=1e-4
            )
            t, before = float(run.t_events[0][0]), run.y_events[0][0]
            e, v = self.pin(t, before)
            u = e / np.hypot(*e)
            G = np.array([-u @ [-np.sin(before[0]), np.cos(before[0])] * self.L, u[0]])
            W = np.array([1.0 / (self.I + self.m * self.lc**2), 1.0 / self.M])
            impulse = (1.0 + self.e) * float(u @ v) / float(G @ (W * G))
            y = before.copy()
            y[2:] += W * G * impulse
            found.append((t, before, y.copy(), impulse))
        return found


# ------------------------------------------------------------------------------------------- four-bar against a stop
# Maximal coordinates: three bars with (x, y, angle) each, pins at their ends, rows of the pins by hand. One degree of
# freedom: the impulse of a stop on the rocker reverses all speeds, v+ = -e v-, whatever the masses are. The impulses of
# stop and pins follow from M (v+ - v-) = J^T Lam + B^T Z; in minimal coordinates, with the rocker's speed w and the
# inertia E reduced to it, Z = (1 + e) E |w|.


@dataclass(frozen=True)
class FourBar:
    """Bars as rods, centre in the middle: lengths and masses of crank, coupler, rocker; distance of the ground pins."""

    lengths: tuple[float, float, float] = (0.1, 0.3, 0.25)
    masses: tuple[float, float, float] = (0.5, 1.2, 0.9)
    ground: float = 0.28

    def pose(self, crank: float) -> Array:
        """Angles of the three bars; the coupler above the line from the crank pin to the ground pin of the rocker.

        The rocker's angle is that from its ground pin to the coupler.
        """
        l1, l2, l3 = self.lengths
        p, d = l1 * np.array([np.cos(crank), np.sin(crank)]), np.array([self.ground, 0.0])
        s = d - p
        size = np.hypot(*s)
        angle = np.arctan2(s[1], s[0]) + np.arccos((l2**2 + size**2 - l3**2) / (2 * l2 * size))
        q = p + l2 * np.array([np.cos(angle), np.sin(angle)])
        return np.array([crank, angle, np.arctan2(q[1] - d[1], q[0] - d[0])])

    def rates(self, crank: float) -> Array:
        """Rates of the three angles per rate of the crank."""
        a, b, c = self.pose(crank)
        l1, l2, l3 = self.lengths
        A = np.array([[-l2 * np.sin(b), l3 * np.sin(c)], [l2 * np.cos(b), -l3 * np.cos(c)]])
        return np.array([1.0, *np.linalg.solve(A, [l1 * np.sin(a), -l1 * np.cos(a)])])

    def impact(self, crank: float, rate: float, e: float) -> dict[str, Array | float]:
        """Speeds after the stop on the rocker, impulses of the stop and of the pins A, B, C, D (x, y each)."""
        angles, l = self.pose(crank), self.lengths
        half = [0.5 * x for x in l]
        M = np.diag([y for m, x in zip(self.masses, l, strict=True) for y in (m, m, m * x * x / 12.0)])

        def end(bar: int, side: float) -> Array:
            """Velocity of an end of a bar as rows (2, 9)."""
            R = np.zeros((2, 9))
            R[:, 3 * bar : 3 * bar + 2] = np.eye(2)
            R[:, 3 * bar + 2] = side * half[bar] * np.array([-np.sin(angles[bar]), np.cos(angles[bar])])
            return R

        # Pins: A ground-crank, B crank-coupler, C coupler-rocker, D ground-rocker; impulse on the second body.
        J = np.vstack([end(0, -1), end(1, -1) - end(0, 1), end(2, 1) - end(1, 1), end(2, -1)])
        B = np.zeros((1, 9))
        w = self.rates(crank) * rate
        B[0, 8] = 1.0 if w[2] < 0.0 else -1.0
        v = np.linalg.svd(J)[2][8]  # the one motion that the pins allow
        v = v * (w[0] / v[2])
        K = np.block([[M, -J.T, -B.T], [J, np.zeros((8, 9))], [B, np.zeros((1, 9))]])
        found = np.linalg.solve(K, np.concatenate([M @ v, np.zeros(8), -e * (B @ v)]))
        return {"before": v[[2, 5, 8]], "after": found[[2, 5, 8]], "pins": found[9:17].reshape(4, 2), "stop": found[17]}

    def reduced_inertia(self, crank: float) -> float:
        """Inertia reduced to the rocker's angle, by the kinetic energy."""
        w = self.rates(crank)
        w = w / w[2]
        angles, l = self.pose(crank), self.lengths
        pin = l[0] * w[0] * np.array([-np.sin(angles[0]), np.cos(angles[0])])
        middle = pin + 0.5 * l[1] * w[1] * np.array([-np.sin(angles[1]), np.cos(angles[1])])
        rods = [m * x * x for m, x in zip(self.masses, l, strict=True)]
        return float(
            rods[0] * w[0] ** 2 / 3 + rods[1] * w[1] ** 2 / 12 + self.masses[1] * middle @ middle + rods[2] / 3
        )
