"""Benchmark problems of the IFToMM library of computational benchmark problems, and of the initial value test set."""

from __future__ import annotations

from loopdyn.forces import SpringDamper
from loopdyn.joints import Prismatic, Revolute
from loopdyn.library._common import PIN, at_least_one
from loopdyn.model.inertia import Inertia
from loopdyn.model.mechanism import Mechanism, Start


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

    Parameters of the mechanism: driving torque `mom`; stiffness `c0` and free length `l0` of the spring; angles at the
    reference pose; dimensions under the names of the test set.

    Examples
    --------
    >>> m = andrews()
    >>> len(m.bodies), len(m.joints), m.compile().nv
    (7, 10, 7)
    """
    m = Mechanism("andrews", parameters=ANDREWS)
    O, A, B, C = (0, 0, 0), ("xa", "ya", 0), ("xb", "yb", 0), ("xc", "yc", 0)
    F, G, H = ("xf", "yf", 0), ("xg", "yg", 0), ("xh", "yh", 0)
    D = ("xb + sc*sin(gamma) + sd*cos(gamma)", "yb - sc*cos(gamma) + sd*sin(gamma)", 0)
    E = ("xb + ss*sin(gamma)", "yb - ss*cos(gamma)", 0)
    links = {
        "K1": (0.04325, 2.194e-6, "ra*cos(beta)", "ra*sin(beta)"),
        "K2": (0.00365, 4.410e-7, "xf - da*cos(beta + theta)", "yf - da*sin(beta + theta)"),
        "K3": (0.02373, 5.255e-6, "xb + sa*sin(gamma) + sb*cos(gamma)", "yb - sa*cos(gamma) + sb*sin(gamma)"),
        "K4": (0.00706, 5.667e-7, "xg + (e4 - ea)*sin(phi + delta)", "yg - (e4 - ea)*cos(phi + delta)"),
        "K5": (0.07050, 1.169e-5, "xa + ta*cos(delta) - tb*sin(delta)", "ya + ta*sin(delta) + tb*cos(delta)"),
        "K6": (0.00706, 5.667e-7, "xh + (zf - fa)*cos(omega + epsilon)", "yh + (zf - fa)*sin(omega + epsilon)"),
        "K7": (0.05498, 1.912e-5, "xa + ua*sin(epsilon) - ub*cos(epsilon)", "ya - ua*cos(epsilon) - ub*sin(epsilon)"),
    }
    for name, (mass, izz, x, y) in links.items():
        m.add_body(name, Inertia.planar(mass=mass, com=(x, y, 0), izz=izz))
    for name, parent, child, at in (
        ("O", m.ground, "K1", O),
        ("F", "K1", "K2", F),
        ("B", m.ground, "K3", B),
        ("E2", "K3", "K2", E),  # four bodies meet in E
        ("E4", "K3", "K4", E),
        ("E6", "K3", "K6", E),
        ("G", "K5", "K4", G),
        ("A5", m.ground, "K5", A),
        ("H", "K7", "K6", H),
        ("A7", m.ground, "K7", A),
    ):
        m.add_joint(name, PIN, parent, child, at=at)
    m.add_motor("drive", "O", torque="mom")
    m.add_force("spring", SpringDamper("K3", m.ground, D, C, stiffness="c0", length="l0"))
    return m


ANDREWS = {
    "mom": 0.033,
    "c0": 4530.0,
    "l0": 0.07785,
    # angles of the start, in rad; seventeen digits of the thirty that are printed
    "beta": -0.061713890014276450,
    "theta": 0.0,
    "gamma": 0.45527981916307038,
    "phi": 0.22266839016588588,
    "delta": 0.48736497954384255,
    "omega": "-phi",
    "epsilon": 1.2305474445498212,
    # pivots on the ground
    "xa": -0.06934,
    "ya": -0.00227,
    "xb": -0.03635,
    "yb": 0.03273,
    "xc": 0.014,
    "yc": 0.072,
    # links
    "rr": 0.007,
    "ra": 0.00092,
    "da": 0.0115,
    "ss": 0.035,
    "sa": 0.01874,
    "sb": 0.01043,
    "sc": 0.018,
    "sd": 0.02,
    "e4": 0.02,
    "ea": 0.01421,
    "zt": 0.04,
    "ta": 0.02308,
    "tb": 0.00916,
    "zf": 0.02,
    "fa": 0.01421,
    "u": 0.04,
    "ua": 0.01228,
    "ub": 0.00449,
    # pins between links
    "xf": "rr*cos(beta)",
    "yf": "rr*sin(beta)",
    "xg": "xa + zt*cos(delta)",
    "yg": "ya + zt*sin(delta)",
    "xh": "xa + u*sin(epsilon)",
    "yh": "ya - u*cos(epsilon)",
}


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
        minus = "-" if sign < 0 else ""
        middle = (f"{minus}(0.05 + 0.5*cos(alpha))", 0, "1 - 0.5*sin(alpha)")
        end = (f"{minus}(0.05 + cos(alpha))", 0, "1 - sin(alpha)")
        tilt = {"axis": (0, sign, 0), "angle": "alpha"}
        bar = Inertia.box(mass=0.3, size=(1.0, 0.01, 0.01), at=middle, rotation=tilt)
        arm = m.add_body(f"arm{name}", bar + Inertia.point(mass="ball", at=end))
        m.add_joint(f"hinge{name}", Revolute(axis=(0, 1, 0)), shaft, arm, at=(0.05 * sign, 0, 1))
        rod = SpringDamper(slider, arm, (0.05 * sign, 0, "s"), middle, "stiffness", "damping", "coupler")
        m.add_force(f"coupler{name}", rod)
    m.start = Start(v={"spin": "spin"})
    return m


def _times_length(p: tuple[float, ...]) -> tuple[float | str, ...]:
    """Multiples of the parameter `length`, zeros left as they are."""
    return tuple(0.0 if x == 0 else f"{x:g}*length" for x in p)
