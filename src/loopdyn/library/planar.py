"""Planar mechanisms: all move in the x-y plane, with gravity along -y.

Links are flat bodies (:meth:`Inertia.planar`): only the mass, the centre and the inertia about z act in plane motion.
"""

from __future__ import annotations

from loopdyn.inertia import Inertia
from loopdyn.joints import Prismatic
from loopdyn.library._common import PIN
from loopdyn.model import Mechanism, Start


def pendulum() -> Mechanism:
    """Simple pendulum: a point mass on a massless link, released at rest from the horizontal.

    One body, no loop, one degree of freedom. Problem A01 of the IFToMM library of computational benchmarks: 1 kg on
    1 m, pivot at the origin, mass at (-1, 0). The angle from the downward vertical is ``pi/2 - A``. The body is
    a point mass: it has no inertia of its own.

    Examples
    --------
    >>> pendulum().with_(length=0.5).compile().nv
    1
    """
    m = Mechanism("pendulum", gravity=(0, "-g", 0), parameters={"length": 1.0, "mass": 1.0, "g": 9.81})
    bob = m.add_body("bob", Inertia.point(mass="mass", at=("-length", 0, 0)))
    m.add_joint("A", PIN, m.ground, bob, at=(0, 0, 0))
    return m


def double_pendulum() -> Mechanism:
    """Two equal links in a row on parallel pins, released at rest from the horizontal: Huang et al. (2002), Fig. 8.

    Two bodies, no loop, two degrees of freedom. The paper's numbers are 1 slug, 1 slug ft^2 and 2 ft from pin to mass
    centre, printed as 14.59 kg, 1.36 kg m^2 and 0.61 m. Where it starts from is lost with its Fig. 9.

    Parameters of the mechanism: `mass`, `inertia` about the mass centre, `half` the length of a link; `g`.

    Examples
    --------
    >>> double_pendulum().compile().nv
    2
    """
    m = Mechanism(
        "double_pendulum",
        gravity=(0, "-g", 0),
        parameters={"mass": 14.59, "inertia": 1.36, "half": 0.61, "g": 9.81},
    )
    one = m.add_body("link1", Inertia.planar(mass="mass", com=("half", 0, 0), izz="inertia"))
    two = m.add_body("link2", Inertia.planar(mass="mass", com=("3*half", 0, 0), izz="inertia"))
    m.add_joint("A", PIN, m.ground, one, at=(0, 0, 0))
    m.add_joint("B", PIN, one, two, at=("2*half", 0, 0))
    return m


def four_bar() -> Mechanism:
    """Crank-rocker four-bar, crank turning at 8 rad/s at the start.

    Three bodies, four pins, one loop, one degree of freedom; in space the loop has three redundant rows. Reference
    pose: crank at `angle` = 1 rad from +x, coupler and rocker meeting on the left of the line from the crank pin B
    to the pivot D. The numbers are our own, tested against independent solutions: spinning, and released at rest.

    Parameters of the mechanism: lengths `frame`, `crank`, `coupler`, `rocker`; `angle`; `g`.

    Examples
    --------
    >>> m = four_bar().with_(crank=0.25)
    >>> m.compile().nv  # of the tree, with one joint cut
    3
    """
    m = Mechanism(
        "four_bar",
        gravity=(0, "-g", 0),
        parameters={
            "frame": 1.0,
            "crank": 0.3,
            "coupler": 0.9,
            "rocker": 0.6,
            "angle": 1.0,
            "g": 9.81,
            "bx": "crank*cos(angle)",
            "by": "crank*sin(angle)",
            "diagonal": "hypot(frame - bx, by)",  # from B to D
            "tilt": "atan2(-by, frame - bx) + acos((coupler**2 + diagonal**2 - rocker**2)/(2*coupler*diagonal))",
            "cx": "bx + coupler*cos(tilt)",
            "cy": "by + coupler*sin(tilt)",
        },
    )
    # centre of the coupler: 0.5 along it and 0.1 to its left
    centre = ("bx + 0.5*cos(tilt) - 0.1*sin(tilt)", "by + 0.5*sin(tilt) + 0.1*cos(tilt)", 0)
    crank = m.add_body("crank", Inertia.planar(mass=1.0, com=("bx/2", "by/2", 0), izz=0.0075))
    coupler = m.add_body("coupler", Inertia.planar(mass=2.0, com=centre, izz=0.15))
    rocker = m.add_body("rocker", Inertia.planar(mass=1.5, com=("(frame + cx)/2", "cy/2", 0), izz=0.045))
    m.add_joint("A", PIN, m.ground, crank, at=(0, 0, 0))
    m.add_joint("B", PIN, crank, coupler, at=("bx", "by", 0))
    m.add_joint("C", PIN, coupler, rocker, at=("cx", "cy", 0))
    m.add_joint("D", PIN, m.ground, rocker, at=("frame", 0, 0))
    m.start = Start(v={"A": 8.0})
    return m


def watt() -> Mechanism:
    """Watt's six-bar: the coupler and the rocker of a four-bar move two more links, crank turning at 8 rad/s.

    Five bodies, seven pins, two loops, one degree of freedom: :func:`four_bar` with a pin E on its coupler and a pin F
    on its rocker, both away from their common pin C, and links EG and FG. The crank turns fully. The numbers are our
    own.

    Parameters of the mechanism: those of :func:`four_bar`; lengths `link1` of EG and `link2` of FG.

    Examples
    --------
    >>> m = watt()
    >>> len(m.bodies), len(m.compile().topology.loops)
    (5, 2)
    """
    m = four_bar()
    m.name = "watt"
    # E: 0.7 along the coupler and 0.4 to its left; F: beyond C on the line of the rocker
    E = ("bx + 0.7*cos(tilt) - 0.4*sin(tilt)", "by + 0.7*sin(tilt) + 0.4*cos(tilt)")
    F = ("cx + 0.3*(cx - frame)/rocker", "cy + 0.3*cy/rocker")
    _add_dyad(m, "coupler", E, "rocker", F, 0.6, 0.6)
    return m


def stephenson() -> Mechanism:
    """Stephenson's six-bar (third kind): a point of the coupler of a four-bar moves a rocker by a link.

    Five bodies, seven pins, two loops, one degree of freedom: :func:`four_bar`, crank turning at 8 rad/s, with a pin E
    on its coupler, a link EG and a rocker FG that turns about F on the ground. The crank turns fully. Driven at F it is
    a triad, which has no closed form. The numbers are our own.

    Parameters of the mechanism: those of :func:`four_bar`; lengths `link1` of EG and `link2` of FG.

    Examples
    --------
    >>> m = stephenson()
    >>> len(m.bodies), len(m.compile().topology.loops)
    (5, 2)
    """
    m = four_bar()
    m.name = "stephenson"
    E = ("bx + 0.5*cos(tilt) - 0.4*sin(tilt)", "by + 0.5*sin(tilt) + 0.4*cos(tilt)")
    _add_dyad(m, "coupler", E, "ground", ("1.5*frame", "frame"), 1.2, 0.7)
    return m


def _add_dyad(
    m: Mechanism, first: str, E: tuple[str, str], second: str, F: tuple[str, str], link1: float, link2: float
) -> None:
    """Links EG and FG between a pin E on one body and a pin F on another, G to the left of the line from E to F."""
    m.parameters |= {"link1": link1, "link2": link2, "ex": E[0], "ey": E[1], "fx": F[0], "fy": F[1]}
    m.parameters |= {
        "ef": "hypot(fx - ex, fy - ey)",
        "tilt1": "atan2(fy - ey, fx - ex) + acos((link1**2 + ef**2 - link2**2)/(2*link1*ef))",
        "gx": "ex + link1*cos(tilt1)",
        "gy": "ey + link1*sin(tilt1)",
    }
    one = m.add_body("EG", _slender(1.0, "link1", ("(ex + gx)/2", "(ey + gy)/2", 0)))
    two = m.add_body("FG", _slender(0.8, "link2", ("(fx + gx)/2", "(fy + gy)/2", 0)))
    m.add_joint("E", PIN, first, one, at=("ex", "ey", 0))
    m.add_joint("F", PIN, second, two, at=("fx", "fy", 0))
    m.add_joint("G", PIN, one, two, at=("gx", "gy", 0))


def slider_crank() -> Mechanism:
    """Offset slider-crank, crank turning at 12 rad/s at the start.

    Three bodies, three pins and a slide, one loop, one degree of freedom. Reference pose: crank at `angle` = 0.5 rad
    from +x; the slider moves along x at the height `offset`. The numbers are our own, tested against
    an independent solution. The slider does not turn: its size has no effect.

    Parameters of the mechanism: `crank`, `rod`, `offset`, `angle`, `g`.

    Examples
    --------
    >>> slider_crank().compile().nv
    3
    """
    m = Mechanism(
        "slider_crank",
        gravity=(0, "-g", 0),
        parameters={
            "crank": 0.15,
            "rod": 0.45,
            "offset": 0.02,
            "angle": 0.5,
            "g": 9.81,
            "bx": "crank*cos(angle)",
            "by": "crank*sin(angle)",
            "cx": "bx + sqrt(rod**2 - (by - offset)**2)",
        },
    )
    crank = m.add_body("crank", Inertia.planar(mass=1.0, com=("bx/2", "by/2", 0), izz=0.002))
    rod = m.add_body("rod", Inertia.planar(mass=0.8, com=("(bx + cx)/2", "(by + offset)/2", 0), izz=0.0135))
    slider = m.add_body("slider", Inertia.box(mass=0.5, size=(0.08, 0.04, 0.04), at=("cx", "offset", 0)))
    m.add_joint("A", PIN, m.ground, crank, at=(0, 0, 0))
    m.add_joint("B", PIN, crank, rod, at=("bx", "by", 0))
    m.add_joint("C", PIN, rod, slider, at=("cx", "offset", 0))
    m.add_joint("D", Prismatic(axis=(1, 0, 0)), m.ground, slider, at=("cx", "offset", 0))
    m.start = Start(v={"A": 12.0})
    return m


def quick_return() -> Mechanism:
    """Whitworth's quick return: a crank turns a slotted arm, which moves a ram by a link; crank at 10 rad/s.

    Five bodies, five pins and two slides, two loops, one degree of freedom. The crank turns about the origin; its pin B
    carries a block that slides along the arm, which turns about D, `offset` below. As `offset` is less than `crank` the
    arm turns fully, unevenly. A link from its end E to the ram, which slides along x at the height of D. Reference
    pose: crank at `angle` = 0.7 rad from +x. The numbers are our own.

    Parameters of the mechanism: `crank`, `offset`, `arm` from D to E, `link`, `angle`, `g`.

    Examples
    --------
    >>> m = quick_return()
    >>> len(m.bodies), len(m.compile().topology.loops)
    (5, 2)
    """
    m = Mechanism(
        "quick_return",
        gravity=(0, "-g", 0),
        parameters={
            "crank": 0.25,
            "offset": 0.1,
            "arm": 0.2,
            "link": 0.6,
            "angle": 0.7,
            "g": 9.81,
            "bx": "crank*cos(angle)",
            "by": "crank*sin(angle)",
            "tilt": "atan2(by + offset, bx)",
            "ex": "arm*cos(tilt)",
            "ey": "arm*sin(tilt) - offset",
            "fx": "ex + sqrt(link**2 - (ey + offset)**2)",
        },
    )
    crank = m.add_body("crank", _slender(1.0, "crank", ("bx/2", "by/2", 0)))
    block = m.add_body("block", Inertia.planar(mass=0.3, com=("bx", "by", 0), izz=0.0002))
    arm = m.add_body("arm", Inertia.planar(mass=1.5, com=("bx/2", "(by - offset)/2", 0), izz=0.02))
    link = m.add_body("link", _slender(0.8, "link", ("(ex + fx)/2", "(ey - offset)/2", 0)))
    ram = m.add_body("ram", Inertia.box(mass=2.0, size=(0.2, 0.04, 0.04), at=("fx", "-offset", 0)))
    m.add_joint("A", PIN, m.ground, crank, at=(0, 0, 0))
    m.add_joint("B", PIN, crank, block, at=("bx", "by", 0))
    m.add_joint("C", Prismatic(axis=("bx", "by + offset", 0)), arm, block, at=("bx", "by", 0))
    m.add_joint("D", PIN, m.ground, arm, at=(0, "-offset", 0))
    m.add_joint("E", PIN, arm, link, at=("ex", "ey", 0))
    m.add_joint("F", PIN, link, ram, at=("fx", "-offset", 0))
    m.add_joint("G", Prismatic(axis=(1, 0, 0)), m.ground, ram, at=("fx", "-offset", 0))
    m.start = Start(v={"A": 10.0})
    return m


def five_bar() -> Mechanism:
    """Five-bar with two cranks, released at rest.

    Four bodies, five pins, one loop, two degrees of freedom. Reference pose: crank AB at `angle1` = -2.6 rad and
    crank ED at `angle2` = -0.9 rad from +x, the couplers BC and DC meeting below the line BD. With these lengths the
    two crank angles never meet a dead point. The numbers are our own, tested against an independent solution.

    Parameters of the mechanism: `frame`, `crank1`, `coupler1`, `crank2`, `coupler2`, `angle1`, `angle2`, `g`.

    Examples
    --------
    >>> five_bar().compile().nv
    4
    """
    m = Mechanism(
        "five_bar",
        gravity=(0, "-g", 0),
        parameters={
            "frame": 1.0,
            "crank1": 0.4,
            "coupler1": 0.9,
            "crank2": 0.4,
            "coupler2": 0.9,
            "angle1": -2.6,
            "angle2": -0.9,
            "g": 9.81,
            "bx": "crank1*cos(angle1)",
            "by": "crank1*sin(angle1)",
            "dx": "frame + crank2*cos(angle2)",
            "dy": "crank2*sin(angle2)",
            "bd": "hypot(dx - bx, dy - by)",
            "tilt": "atan2(dy - by, dx - bx) - acos((coupler1**2 + bd**2 - coupler2**2)/(2*coupler1*bd))",
            "cx": "bx + coupler1*cos(tilt)",
            "cy": "by + coupler1*sin(tilt)",
        },
    )
    A, B, C, D, E = (0, 0, 0), ("bx", "by", 0), ("cx", "cy", 0), ("dx", "dy", 0), ("frame", 0, 0)
    ab = m.add_body("AB", _slender(1.0, "crank1", ("bx/2", "by/2", 0)))
    bc = m.add_body("BC", _slender(1.6, "coupler1", ("(bx + cx)/2", "(by + cy)/2", 0)))
    dc = m.add_body("DC", _slender(1.2, "coupler2", ("(dx + cx)/2", "(dy + cy)/2", 0)))
    ed = m.add_body("ED", _slender(0.8, "crank2", ("(frame + dx)/2", "dy/2", 0)))
    m.add_joint("A", PIN, m.ground, ab, at=A)
    m.add_joint("B", PIN, ab, bc, at=B)
    m.add_joint("C", PIN, bc, dc, at=C)
    m.add_joint("D", PIN, ed, dc, at=D)
    m.add_joint("E", PIN, m.ground, ed, at=E)
    return m


def _slender(mass: float, length: str, com: tuple[str, str, int]) -> Inertia:
    """Uniform slender rod as a flat body: m l^2/12 about z."""
    return Inertia.planar(mass=mass, com=com, izz=f"{mass}*{length}**2/12")
