"""Planar mechanisms: all move in the x-y plane, with gravity along -y.

Links are flat bodies (:meth:`Inertia.planar`): only the mass, the centre and the inertia about z act in plane motion.
"""

from __future__ import annotations

from loopdyn.joints import Prismatic
from loopdyn.library._common import PIN, at_least_one
from loopdyn.model.inertia import Inertia
from loopdyn.model.mechanism import Mechanism, Start


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
    centre, printed as 14.59 kg, 1.36 kg m^2 and 0.61 m. Its start is only in Fig. 9, which is missing.

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


def peaucellier() -> Mechanism:
    """Peaucellier's linkage: seven bars and pins that draw an exact straight line; crank at 2 rad/s.

    Seven bodies, ten pins, three loops, one degree of freedom. Two long arms turn about the origin O and hold the
    corners A, B of a rhombus A-P-B-C. P and C are inverse points: OP * OC = arm^2 - side^2. The crank, of the length
    `crank`, turns about (`crank`, 0), so that P moves on a circle through O and C on the line
    x = (arm^2 - side^2)/(2 crank). Reference pose: crank at `angle` = 0.5 rad from +x. The numbers are our own.

    Parameters of the mechanism: lengths `arm`, `side`, `crank`; `angle`; `g`.

    Examples
    --------
    >>> m = peaucellier()
    >>> len(m.bodies), len(m.compile().topology.loops)
    (7, 3)
    """
    m = Mechanism(
        "peaucellier",
        gravity=(0, "-g", 0),
        parameters={
            "arm": 1.0,
            "side": 0.4,
            "crank": 0.35,
            "angle": 0.5,
            "g": 9.81,
            "px": "crank + crank*cos(angle)",
            "py": "crank*sin(angle)",
            "op": "hypot(px, py)",
            "along": "(arm**2 + op**2 - side**2)/(2*op)",  # from O to the middle of AB, on the line OP
            "across": "sqrt(arm**2 - along**2)",
            "ax": "(along*px - across*py)/op",
            "ay": "(along*py + across*px)/op",
            "bx": "(along*px + across*py)/op",
            "by": "(along*py - across*px)/op",
            "cx": "ax + bx - px",
            "cy": "ay + by - py",
        },
    )
    at: dict[str, tuple[str, str]] = {
        "O": ("0", "0"),
        "Q": ("crank", "0"),
        **{name: (f"{name.lower()}x", f"{name.lower()}y") for name in "APBC"},
    }
    for name, length, mass in (
        ("OA", "arm", 1.0),
        ("OB", "arm", 1.0),
        ("QP", "crank", 0.5),
        ("AP", "side", 0.4),
        ("BP", "side", 0.4),
        ("AC", "side", 0.4),
        ("BC", "side", 0.4),
    ):
        (x1, y1), (x2, y2) = at[name[0]], at[name[1]]
        m.add_body(name, _slender(mass, length, (f"({x1} + {x2})/2", f"({y1} + {y2})/2", 0)))
    for name, parent, child in (
        ("Q", m.ground, "QP"),
        ("O1", m.ground, "OA"),
        ("O2", m.ground, "OB"),
        ("P1", "QP", "AP"),
        ("P2", "QP", "BP"),
        ("A1", "OA", "AP"),
        ("A2", "OA", "AC"),
        ("B1", "OB", "BP"),
        ("B2", "OB", "BC"),
        ("C", "AC", "BC"),
    ):
        m.add_joint(name, PIN, parent, child, at=(*at[name[0]], 0))
    m.start = Start(v={"Q": 2.0})
    return m


def theo_jansen() -> Mechanism:
    """One leg of Theo Jansen's beach animals, with his thirteen numbers in cm; crank at -6 rad/s.

    Seven bodies, ten pins, three loops, one degree of freedom. In Jansen's letters: the crank m turns about the origin;
    the bars j and k go from its pin P to U and W; U is a corner of the upper triangle b, d, e and W the end of the bar
    c, both on the ground pivot F = (-a, -l). The bar f runs from the third corner V to X, a corner of the lower
    triangle g, h, i, whose corner Y is the foot. The crank turns fully; clockwise, the body above a foot on the ground
    moves towards +x. Lengths as Jansen publishes them; masses (0.2 kg for 1 m of bar) are our own.

    Parameters of the mechanism: `bar_a` to `bar_m`; crank `angle` at the reference pose; `g`.

    Examples
    --------
    >>> m = theo_jansen()
    >>> len(m.bodies), len(m.compile().topology.loops)
    (7, 3)
    """
    m = Mechanism(
        "theo_jansen",
        gravity=(0, "-g", 0),
        parameters={
            **JANSEN,
            "angle": 0.6,
            "g": 9.81,
            "px": "bar_m*cos(angle)",
            "py": "bar_m*sin(angle)",
            "fx": "-bar_a",
            "fy": "-bar_l",
            **_circles("u", "f", "bar_b", "p", "bar_j"),
            **_circles("w", "p", "bar_k", "f", "bar_c"),
            **_circles("v", "f", "bar_d", "u", "bar_e"),
            **_circles("x", "w", "bar_g", "v", "bar_f"),
            **_circles("y", "w", "bar_i", "x", "bar_h"),
        },
    )
    at = {name: (f"{name.lower()}x", f"{name.lower()}y") for name in "PFUVWXY"} | {"O": ("0", "0")}

    def bar(length: str, one: str, two: str) -> Inertia:
        (x1, y1), (x2, y2) = at[one], at[two]
        com = (f"({x1} + {x2})/2", f"({y1} + {y2})/2", 0)
        return Inertia.planar(mass=f"0.2*{length}", com=com, izz=f"0.2*{length}**3/12")

    m.add_body("crank", bar("bar_m", "O", "P"))
    m.add_body("j", bar("bar_j", "P", "U"))
    m.add_body("upper", bar("bar_b", "F", "U") + bar("bar_d", "F", "V") + bar("bar_e", "U", "V"))
    m.add_body("k", bar("bar_k", "P", "W"))
    m.add_body("c", bar("bar_c", "F", "W"))
    m.add_body("f", bar("bar_f", "V", "X"))
    m.add_body("lower", bar("bar_g", "W", "X") + bar("bar_h", "X", "Y") + bar("bar_i", "W", "Y"))
    for name, parent, child in (
        ("O", m.ground, "crank"),
        ("P1", "crank", "j"),
        ("P2", "crank", "k"),
        ("U", "j", "upper"),
        ("F1", m.ground, "upper"),
        ("F2", m.ground, "c"),
        ("W1", "k", "c"),
        ("W2", "c", "lower"),
        ("V", "upper", "f"),
        ("X", "f", "lower"),
    ):
        m.add_joint(name, PIN, parent, child, at=(*at[name[0]], 0))
    m.start = Start(v={"O": -6.0})
    return m


# Jansen's "holy numbers", 1 for 1 cm.
JANSEN = {
    "bar_a": 0.380,
    "bar_b": 0.415,
    "bar_c": 0.393,
    "bar_d": 0.401,
    "bar_e": 0.558,
    "bar_f": 0.394,
    "bar_g": 0.367,
    "bar_h": 0.657,
    "bar_i": 0.490,
    "bar_j": 0.500,
    "bar_k": 0.619,
    "bar_l": 0.078,
    "bar_m": 0.150,
}


def _circles(point: str, one: str, r1: str, two: str, r2: str) -> dict[str, str]:
    """Parameters of the place of `point` at the distances r1, r2 from two others, to the left of the line one-two."""
    dx, dy = f"({two}x - {one}x)", f"({two}y - {one}y)"
    return {
        f"{point}d": f"hypot({dx}, {dy})",
        f"{point}t": f"atan2({dy}, {dx}) + acos(({r1}**2 + {point}d**2 - {r2}**2)/(2*{r1}*{point}d))",
        f"{point}x": f"{one}x + {r1}*cos({point}t)",
        f"{point}y": f"{one}y + {r1}*sin({point}t)",
    }


def scissor_lift(stages: int = 20) -> Mechanism:
    """Scissor lift: `stages` pairs of crossed bars between the ground and a platform, sinking from rest.

    2n + 3 bodies, 3n + 2 pins and two slides, n + 1 loops, one degree of freedom. The bars of each stage are pinned in
    their middles, and at their ends to the next stage. At the left, the lowest bar is pinned to the ground and the
    highest to the platform; at the right, blocks slide on both. With the bars at the angle x the platform is at
    n * bar * sin(x), which n bars in a row could just reach, and the blocks at bar * cos(x). Reference pose:
    `angle` = 0.5 rad. The numbers are our own.

    Parameters of the mechanism: length `bar`; `angle`; masses `bar_mass`, `payload` (the platform), `block` (the block
    on the ground and the one on the platform); `g`.

    Parameters
    ----------
    stages : int
        Number of pairs of bars.

    Examples
    --------
    >>> m = scissor_lift(20)
    >>> len(m.bodies), len(m.joints), len(m.compile().topology.loops)
    (43, 64, 21)
    """
    at_least_one("stages", stages)
    m = Mechanism(
        "scissor_lift",
        gravity=(0, "-g", 0),
        parameters={
            "bar": 1.0,
            "angle": 0.5,
            "bar_mass": 1.0,
            "payload": 20.0,
            "block": 0.5,
            "g": 9.81,
            "width": "bar*cos(angle)",
            "rise": "bar*sin(angle)",
            "izz": "bar_mass*bar**2/12",
        },
    )
    m.add_body("foot", Inertia.planar(mass="block", com=("width", 0, 0), izz="0.001*block"))
    for k in range(1, stages + 1):
        middle = ("width/2", f"{k - 0.5}*rise", 0)
        for side in ("up", "down"):  # from the left, upwards or downwards
            m.add_body(f"{side}{k}", Inertia.planar(mass="bar_mass", com=middle, izz="izz"))
    top = f"{stages}*rise"
    m.add_body("head", Inertia.planar(mass="block", com=("width", top, 0), izz="0.001*block"))
    m.add_body("platform", Inertia.planar(mass="payload", com=("bar/2", top, 0), izz="payload*bar**2/12"))

    slide = Prismatic(axis=(1, 0, 0))
    m.add_joint("foot", slide, m.ground, "foot", at=("width", 0, 0))
    m.add_joint("A", PIN, m.ground, "up1", at=(0, 0, 0))
    m.add_joint("B", PIN, "foot", "down1", at=("width", 0, 0))
    for k in range(1, stages + 1):
        m.add_joint(f"M{k}", PIN, f"up{k}", f"down{k}", at=("width/2", f"{k - 0.5}*rise", 0))
        if k < stages:
            m.add_joint(f"L{k}", PIN, f"down{k}", f"up{k + 1}", at=(0, f"{k}*rise", 0))
            m.add_joint(f"R{k}", PIN, f"up{k}", f"down{k + 1}", at=("width", f"{k}*rise", 0))
    m.add_joint("C", PIN, f"down{stages}", "platform", at=(0, top, 0))
    m.add_joint("D", PIN, f"up{stages}", "head", at=("width", top, 0))
    m.add_joint("head", slide, "platform", "head", at=("width", top, 0))
    return m


def _slender(mass: float, length: str, com: tuple[str, str, int]) -> Inertia:
    """Uniform slender rod as a flat body: m l^2/12 about z."""
    return Inertia.planar(mass=mass, com=com, izz=f"{mass}*{length}**2/12")
