"""Benchmark problems of the IFToMM library of computational benchmark problems, and of the initial value test set."""

from __future__ import annotations

from math import cos, pi, sin

from loopdyn.forces import SpringDamper
from loopdyn.inertia import Inertia
from loopdyn.joints import Prismatic, Revolute
from loopdyn.library._common import PIN, at_least_one
from loopdyn.model import Mechanism, Start


def n_four_bar(N: int = 2) -> Mechanism:
    """`N` square windows in a row: cranks on the ground, joined by couplers (problem A02).

    2N + 1 bodies, 3N + 1 pins, N loops, one degree of freedom. Reference pose: cranks vertical. At the start the
    upper ends move at 1 m/s along x. When all links lie in one line, N more freedoms appear at this pose.

    Parameters
    ----------
    N : int
        Number of windows; the library asks for 2, its first edition for 40.

    Examples
    --------
    >>> m = n_four_bar(2)
    >>> len(m.bodies), len(m.joints)
    (5, 7)
    """
    at_least_one("N", N)
    m = Mechanism("n_four_bar", gravity=(0, "-g", 0), parameters={"length": 1.0, "mass": 1.0, "g": 9.81, "speed": 1.0})
    izz = "mass*length**2/12"
    for i in range(N + 1):
        m.add_body(f"crank{i}", Inertia.planar(mass="mass", com=(f"{i}*length", "length/2", 0), izz=izz))
        m.add_joint(f"A{i}", PIN, m.ground, f"crank{i}", at=(f"{i}*length", 0, 0))
    for i in range(N):
        m.add_body(f"coupler{i}", Inertia.planar(mass="mass", com=(f"{i + 0.5}*length", "length", 0), izz=izz))
        m.add_joint(f"B{i}", PIN, f"crank{i}", f"coupler{i}", at=(f"{i}*length", "length", 0))
        m.add_joint(f"C{i}", PIN, f"coupler{i}", f"crank{i + 1}", at=(f"{i + 1}*length", "length", 0))
    m.start = Start(v={"A0": "-speed/length"})
    return m


def andrews() -> Mechanism:
    """Andrews' squeezing mechanism, driven by a constant torque from rest (problem A03).

    Seven bodies, ten pins, three loops, one degree of freedom; no gravity. Numbers of the initial value test set, with
    beta at the start as printed there (the benchmark library rounds it: another trajectory). The classical
    angles beta, Theta, gamma, Phi, delta, Omega, epsilon are those of the start plus the pins O, F, B, G, A5, H, A7.

    Parameters of the mechanism: driving torque `mom`; stiffness `c0` and free length `l0` of the spring.

    Examples
    --------
    >>> m = andrews()
    >>> len(m.bodies), len(m.joints), m.compile().nv
    (7, 10, 7)
    """
    m = Mechanism("andrews", parameters={"mom": 0.033, "c0": 4530.0, "l0": 0.07785})
    beta, gamma, phi = -0.06171389001427645, 0.45527981916307038, 0.22266839016588588
    delta, epsilon = 0.48736497954384255, 1.23054744454982119
    omega = -phi  # and Theta = 0: the angle of K2 is beta
    A, B, C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)

    # Points of a body: origin of its frame, then coordinates along and across its direction (angle).
    F = _along((0.0, 0.0), beta, 0.007)
    E = _along(B, gamma - pi / 2, 0.035)
    D = _along(B, gamma - pi / 2, 0.018, 0.02)
    G = _along(A, delta, 0.04)
    H = _along(A, epsilon - pi / 2, 0.04)
    m.add_body("K1", Inertia.planar(0.04325, com=_point(_along((0.0, 0.0), beta, 0.00092)), izz=2.194e-6))
    m.add_body("K2", Inertia.planar(0.00365, com=_point(_along(F, beta, -0.0115)), izz=4.410e-7))
    m.add_body("K3", Inertia.planar(0.02373, com=_point(_along(B, gamma - pi / 2, 0.01874, 0.01043)), izz=5.255e-6))
    m.add_body("K4", Inertia.planar(0.00706, com=_point(_along(G, phi + delta - pi / 2, 0.02 - 0.01421)), izz=5.667e-7))
    m.add_body("K5", Inertia.planar(0.07050, com=_point(_along(A, delta, 0.02308, 0.00916)), izz=1.169e-5))
    m.add_body("K6", Inertia.planar(0.00706, com=_point(_along(H, omega + epsilon, 0.02 - 0.01421)), izz=5.667e-7))
    m.add_body("K7", Inertia.planar(0.05498, com=_point(_along(A, epsilon - pi / 2, 0.01228, -0.00449)), izz=1.912e-5))
    m.add_joint("O", PIN, m.ground, "K1", at=(0, 0, 0))
    m.add_joint("F", PIN, "K1", "K2", at=_point(F))
    m.add_joint("B", PIN, m.ground, "K3", at=_point(B))
    for k in (2, 4, 6):  # four bodies meet in E
        m.add_joint(f"E{k}", PIN, "K3", f"K{k}", at=_point(E))
    m.add_joint("G", PIN, "K5", "K4", at=_point(G))
    m.add_joint("A5", PIN, m.ground, "K5", at=_point(A))
    m.add_joint("H", PIN, "K7", "K6", at=_point(H))
    m.add_joint("A7", PIN, m.ground, "K7", at=_point(A))
    m.add_motor("drive", "O", torque="mom")
    m.add_force(SpringDamper("K3", m.ground, _point(D), _point(C), stiffness="c0", length="l0"), "spring")
    return m


def bricard(slender: bool = False) -> Mechanism:
    """Bricard's linkage: five rods, six hinges, each perpendicular to its neighbours (problem A04).

    Five bodies, six revolute joints, one loop. Counting gives no freedom, but it has one at every pose: one row of the
    loop is redundant for ever. Starts at rest. With alpha the angle of the closed form, joint P1 is ``pi/2 - alpha``.

    Parameters
    ----------
    slender : bool
        Rods without thickness (no inertia about their own axis), in place of square bars 0.1 m wide.

    Examples
    --------
    >>> m = bricard()
    >>> len(m.bodies), len(m.joints), m.compile().nv
    (5, 6, 5)
    """
    m = Mechanism(
        "bricard_slender" if slender else "bricard",
        gravity=(0, "-g", 0),
        parameters={"length": 1.0, "mass": 1.0, "g": 9.81} | ({} if slender else {"width": 0.1}),
    )
    corners = ((0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1))
    axes = ((0, 1, 0), (0, 0, 1), (1, 0, 0))  # of P1, P2, P3, and again of P4, P5, P6
    for k in range(5):
        m.add_body(f"rod{k + 1}", _bar(corners[k], corners[k + 1], slender))
    bodies = [m.ground, *m.bodies, m.ground]
    for k in range(6):
        m.add_joint(f"P{k + 1}", Revolute(axis=axes[k % 3]), bodies[k], bodies[k + 1], at=_times_length(corners[k]))
    return m


def _bar(start: tuple[int, ...], end: tuple[int, ...], slender: bool) -> Inertia:
    """Rod between two corners of the cube, or square bar along the axis in which they differ."""
    if slender:
        return Inertia.rod(mass="mass", start=_times_length(start), end=_times_length(end))
    size = tuple("width" if a == b else "length" for a, b in zip(start, end, strict=True))
    middle = tuple((a + b) / 2 for a, b in zip(start, end, strict=True))
    return Inertia.box(mass="mass", size=size, at=_times_length(middle))


def flyball() -> Mechanism:
    """Stiff flyball governor: the coupler rods are stiff spring-dampers (problem A05).

    Four bodies, no rigid loop, four degrees of freedom (spin of the shaft, height of the slider, angle of each
    arm). z is up. Starts with everything turning at one turn a second; the dampers' time constant is about
    1e-4 s. Numbers as in the OpenSim implementation of the library's problem: density 3000 kg/m^3.

    Parameters of the mechanism: angle `alpha` of the arms below the horizontal and height `s` of the slider
    at the reference pose; `stiffness`, `damping` and free length `coupler` of the coupler rods; `ball` mass;
    `spin`; `g`.

    Examples
    --------
    >>> flyball().compile().nv
    4
    """
    m = Mechanism(
        "flyball",
        gravity=(0, 0, "-g"),
        parameters={
            "alpha": "pi/6",
            "s": 0.5,
            "stiffness": 8e5,
            "damping": 4e4,
            "coupler": 0.5,
            "ball": 5.0,
            "spin": "2*pi",
            "g": 9.81,
        },
    )
    shaft = m.add_body("shaft", Inertia.box(mass=0.3, size=(0.01, 0.01, 1.0), at=(0, 0, 0.5)))
    slider = m.add_body("slider", Inertia.box(mass=3.0, size=(0.1, 0.1, 0.1), at=(0, 0, "s")))
    m.add_joint("spin", Revolute(axis=(0, 0, 1)), m.ground, shaft, at=(0, 0, 0))
    m.add_joint("slide", Prismatic(axis=(0, 0, 1)), shaft, slider, at=(0, 0, "s"))
    for name, sign in (("1", 1), ("2", -1)):
        middle = (f"{sign}*(0.05 + 0.5*cos(alpha))", 0, "1 - 0.5*sin(alpha)")
        end = (f"{sign}*(0.05 + cos(alpha))", 0, "1 - sin(alpha)")
        tilt = {"axis": (0, sign, 0), "angle": "alpha"}
        bar = Inertia.box(mass=0.3, size=(1.0, 0.01, 0.01), at=middle, rotation=tilt)
        arm = m.add_body(f"arm{name}", bar + Inertia.point(mass="ball", at=end))
        m.add_joint(f"hinge{name}", Revolute(axis=(0, 1, 0)), shaft, arm, at=(0.05 * sign, 0, 1))
        rod = SpringDamper(slider, arm, (0.05 * sign, 0, "s"), middle, "stiffness", "damping", "coupler")
        m.add_force(rod, f"coupler{name}")
    m.start = Start(v={"spin": "spin"})
    return m


def _along(origin: tuple[float, float], angle: float, x: float, y: float = 0.0) -> tuple[float, float]:
    """Point x along a direction and y to its left, from `origin`."""
    c, s = cos(angle), sin(angle)
    return origin[0] + x * c - y * s, origin[1] + x * s + y * c


def _point(p: tuple[float, float]) -> tuple[float, float, float]:
    return (*p, 0.0)


def _times_length(p: tuple[float, ...]) -> tuple[float | str, ...]:
    """Multiples of the parameter `length`, zeros left as they are."""
    return tuple(0.0 if x == 0 else f"{x:g}*length" for x in p)
