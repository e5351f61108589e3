"""Families of any size, to show how time and error grow with the number of loops."""

from __future__ import annotations

from loopdyn.joints import Revolute, Spherical, Universal
from loopdyn.library._common import PIN, at_least_one, vec3
from loopdyn.model.inertia import Inertia
from loopdyn.model.mechanism import Mechanism, Start


def ladder(L: int = 3) -> Mechanism:
    """Spatial ladder of `L` cells: legs on universal joints along one line, rungs joining their tips.

    2L + 1 bodies, L + 1 universal and 2L revolute joints, L loops, two degrees of freedom; two rows of each loop
    are redundant. All legs stay parallel, in a plane that swings about the line of the universal joints: the motion
    is that of one leg with the mass of all, whatever L is. A reconstruction of the ladder of Anderson and
    Critchley (2003), whose text gives no dimensions: it has the paper's counts, the numbers are ours.

    Parameters of the mechanism: lengths `leg`, `rung`; mass of all legs `legs` and of all rungs `rungs`; angles `q1`
    (about the line) and `q2` (in the plane) of the start, speeds `u1`, `u2`; `g`.

    Parameters
    ----------
    L : int
        Number of cells.

    Examples
    --------
    >>> m = ladder(3)
    >>> len(m.bodies), len(m.joints)
    (7, 10)
    """
    at_least_one("L", L)
    sizes = {"leg": 1.0, "rung": 0.7, "legs": 2.0, "rungs": 3.0}
    state = {"q1": 0.4, "q2": 0.3, "u1": 0.5, "u2": -0.7}
    shares = {"leg_mass": f"legs/{L + 1}", "rung_mass": f"rungs/{L}"}
    m = Mechanism("ladder", gravity=(0, "-g", 0), parameters=sizes | state | {"g": 9.81} | shares)
    # slender along y and x: thin-rod inertia across, and little about the own axis
    leg_matrix = {"xx": "leg_mass*leg**2/12", "yy": "0.001*leg_mass", "zz": "leg_mass*leg**2/12"}
    rung_matrix = {"xx": "0.004*rung_mass", "yy": "rung_mass*rung**2/12", "zz": "rung_mass*rung**2/12"}
    hooke = Universal(axis1=(1, 0, 0), axis2=(0, 0, 1))
    q: dict[str, float | str] = {}
    for j in range(L + 1):
        m.add_body(f"leg{j}", Inertia("leg_mass", (f"{j}*rung", "-leg/2", 0), leg_matrix))
        m.add_joint(f"U{j}", hooke, m.ground, f"leg{j}", at=(f"{j}*rung", 0, 0))
        q |= {f"U{j}.1": "q1", f"U{j}.2": "q2"}
    for j in range(1, L + 1):
        m.add_body(f"rung{j}", Inertia("rung_mass", (f"{j - 0.5}*rung", "-leg", 0), rung_matrix))
        m.add_joint(f"A{j}", PIN, f"leg{j - 1}", f"rung{j}", at=(f"{j - 1}*rung", "-leg", 0))
        m.add_joint(f"B{j}", PIN, f"rung{j}", f"leg{j}", at=(f"{j}*rung", "-leg", 0))
        q |= {f"A{j}": "-q2", f"B{j}": "q2"}  # rungs stay parallel to the line
    m.start = Start(q=q, v={"U0.1": "u1", "U0.2": "u2"})
    return m


def star_ladder(L: int = 3) -> Mechanism:
    """`L` + 1 posts on universal joints to the ground, neighbours joined by rungs with a hinge and a ball.

    2L + 1 bodies, L + 1 universal, L revolute (rung on post i) and L spherical joints (rung to post i + 1), L
    loops that share only the ground: 2(L + 1) + L - 3L = 2 degrees of freedom and nothing redundant. Every post
    has its own length, place and axes, spread evenly within some per cent, so that no two cells are alike, nothing
    is aligned with an axis and the motion neither dies out nor grows along the row. The numbers are our own.

    Parameters of the mechanism: `post_mass` and `rung_mass` of each link, `g`.

    Parameters
    ----------
    L : int
        Number of cells.

    Examples
    --------
    >>> m = star_ladder(3)
    >>> len(m.bodies), len(m.joints)
    (7, 10)
    """
    at_least_one("L", L)
    m = Mechanism("star_ladder", gravity=(0, "-g", 0), parameters={"post_mass": 1.0, "rung_mass": 0.6, "g": 9.81})
    tips = []
    for i in range(L + 1):
        x, y, z = 0.7 * i, 0.06 * _spread(i, 0), 0.06 * _spread(i, 1)
        tip = _vector(x + 0.06 * _spread(i, 2), y - 1 - 0.06 * _spread(i, 3), z + 0.06 * _spread(i, 4))
        hooke = Universal(
            axis1=_vector(1, 0.2 * _spread(i, 5), 0.2 * _spread(i, 6)),
            axis2=_vector(0.2 * _spread(i, 7), 0.2 * _spread(i, 8), 1),
        )
        m.add_body(f"post{i}", Inertia.rod(mass="post_mass", start=_vector(x, y, z), end=tip, radius=0.03))
        m.add_joint(f"U{i}", hooke, m.ground, f"post{i}", at=_vector(x, y, z))
        tips.append(tip)
    for i in range(L):
        hinge = Revolute(axis=_vector(0.2 * _spread(i, 9), 0.2 * _spread(i, 10), 1))
        m.add_body(f"rung{i}", Inertia.rod(mass="rung_mass", start=tips[i], end=tips[i + 1], radius=0.02))
        m.add_joint(f"A{i}", hinge, f"post{i}", f"rung{i}", at=tips[i])
        m.add_joint(f"B{i}", Spherical(), f"rung{i}", f"post{i + 1}", at=tips[i + 1])
    m.start = Start(v={"U0.1": 0.5, "U0.2": -0.7})
    return m


def tower(L: int = 3) -> Mechanism:
    """Two rails of `L` stages hanging from the ground, joined by a rung at the end of each stage.

    3L bodies, 2L universal (each rail link on the one above), L revolute (rung on the left rail) and L
    spherical joints (rung to the right rail). L loops, each standing on the one above: 2(2L) + L - 3L = 2L degrees of
    freedom and nothing redundant. Every stage is a little different, as in :func:`star_ladder`. Numbers are our own.

    Parameters of the mechanism: `rail_mass` and `rung_mass` of each link, `g`.

    Parameters
    ----------
    L : int
        Number of stages.

    Examples
    --------
    >>> m = tower(3)
    >>> len(m.bodies), len(m.joints)
    (9, 12)
    """
    at_least_one("L", L)
    m = Mechanism("tower", gravity=(0, 0, "-g"), parameters={"rail_mass": 0.8, "rung_mass": 0.5, "g": 9.81})
    for i in range(1, L + 1):
        for side in ("left", "right"):
            above = m.ground if i == 1 else f"{side}{i - 1}"
            start, end = _tower_node(side, i - 1), _tower_node(side, i)
            hooke = Universal(
                axis1=_vector(1, 0.2 * _spread(i, 5), 0.2 * _spread(i, 6)),
                axis2=_vector(0.2 * _spread(i, 7), 1, 0.2 * _spread(i, 8)),
            )
            m.add_body(f"{side}{i}", Inertia.rod(mass="rail_mass", start=start, end=end, radius=0.03))
            m.add_joint(f"{side[0].upper()}{i}", hooke, above, f"{side}{i}", at=start)
        left, right = _tower_node("left", i), _tower_node("right", i)
        hinge = Revolute(axis=_vector(0.2 * _spread(i, 9), 1, 0.2 * _spread(i, 10)))
        m.add_body(f"rung{i}", Inertia.rod(mass="rung_mass", start=left, end=right, radius=0.02))
        m.add_joint(f"H{i}", hinge, f"left{i}", f"rung{i}", at=left)
        m.add_joint(f"S{i}", Spherical(), f"rung{i}", f"right{i}", at=right)
    m.start = Start(v={"L1.1": 1.0, "L1.2": -0.6})
    return m


def _tower_node(side: str, i: int) -> tuple[float, float, float]:
    """Lower end of stage i of a rail."""
    x, k = (-0.3, 0) if side == "left" else (0.3, 3)
    return _vector(x + 0.06 * _spread(i, k), 0.06 * _spread(i, k + 1), -0.5 * i + 0.06 * _spread(i, k + 2))


def _vector(x: float, y: float, z: float) -> tuple[float, float, float]:
    return vec3((x, y, z), digits=4)


# Square roots of primes: their multiples modulo 1 fill the interval evenly and without a common period.
_IRRATIONAL = (2**0.5, 3**0.5, 5**0.5, 7**0.5, 11**0.5, 13**0.5, 17**0.5, 19**0.5, 23**0.5, 29**0.5, 31**0.5)


def _spread(i: int, k: int) -> float:
    """Number between -1 and 1, for the k-th quantity of cell i."""
    return 2 * ((i + 1) * _IRRATIONAL[k] % 1) - 1
