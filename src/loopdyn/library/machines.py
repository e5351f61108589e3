"""Machines from practice: a wheel suspension, a parallel robot, a drive shaft."""

from __future__ import annotations

from loopdyn.forces import JointSpring, SpringDamper
from loopdyn.joints import Prismatic, Revolute, Spherical, Universal
from loopdyn.model.inertia import Inertia
from loopdyn.model.mechanism import Mechanism, Start

Vector = tuple[float | str, float | str, float | str]


def double_wishbone() -> Mechanism:
    """Front left wheel of a car on two wishbones, with tie rod, steering rack, spring and damper.

    Six bodies, eight joints, two loops, three degrees of freedom: travel of the wheel, steering, spin of the wheel;
    nothing redundant. x is forward, y to the left, z up; the chassis is the ground. The wishbones turn about nearly
    longitudinal axes and carry the upright by a ball each; the tie rod goes from a universal joint on the rack to a
    ball on the upright. A stiff spring holds the rack in the middle. At the start the wheel spins at 50 rad/s and
    moves up. The numbers are our own.

    Parameters of the mechanism: `stiffness`, `damping` and free length `spring` of the spring; stiffness `steering`
    that holds the rack; height `tie` of the outer end of the tie rod; `g`.

    Examples
    --------
    >>> m = double_wishbone()
    >>> len(m.bodies), len(m.joints), len(m.compile().topology.loops)
    (6, 8, 2)
    """
    m = Mechanism(
        "double_wishbone",
        gravity=(0, 0, "-g"),
        parameters={
            "stiffness": 3e4,
            "damping": 1500.0,
            "spring": 0.48,
            "steering": 2e5,
            "tie": 0.27,
            "g": 9.81,
        },
    )
    lower_axis, upper_axis = (1, 0.05, 0.03), (1, -0.04, -0.06)
    lower_pivot, upper_pivot = (0, 0.35, 0.2), (-0.02, 0.42, 0.5)
    lower_ball, upper_ball = (0.01, 0.75, 0.17), (-0.015, 0.7, 0.52)
    inner, outer = (-0.12, 0.33, 0.26), (-0.13, 0.72, "tie")
    centre = (0, 0.78, 0.32)
    lower = m.add_body("lower", _wishbone(4.0, (-0.15, 0.343, 0.196), (0.15, 0.358, 0.205), lower_ball))
    upper = m.add_body("upper", _wishbone(2.5, (-0.12, 0.424, 0.506), (0.08, 0.416, 0.494), upper_ball))
    upright = m.add_body("upright", Inertia.box(mass=6.0, size=(0.1, 0.06, 0.35), at=(0, 0.72, 0.34)))
    disc = Inertia.cylinder(mass=18.0, radius=0.31, length=0.2, axis=(0, 1, 0), at=centre)
    wheel = m.add_body("wheel", disc)
    rod = m.add_body("tie_rod", Inertia.rod(mass=0.8, start=inner, end=outer, radius=0.01))
    rack = m.add_body("rack", Inertia.rod(mass=2.0, start=(-0.12, -0.33, 0.26), end=inner, radius=0.015))
    m.add_joint("lower", Revolute(axis=lower_axis), m.ground, lower, at=lower_pivot)
    m.add_joint("upper", Revolute(axis=upper_axis), m.ground, upper, at=upper_pivot)
    m.add_joint("lower_ball", Spherical(), lower, upright, at=lower_ball)
    m.add_joint("upper_ball", Spherical(), upper, upright, at=upper_ball)
    m.add_joint("hub", Revolute(axis=(0, 1, 0)), upright, wheel, at=centre)
    m.add_joint("rack", Prismatic(axis=(0, 1, 0)), m.ground, rack, at=inner)
    m.add_joint("inner", Universal(axis1=(1, 0, 0), axis2=(0, 0, 1)), rack, rod, at=inner)
    m.add_joint("outer", Spherical(), rod, upright, at=outer)
    strut = SpringDamper(m.ground, lower, (0.0, 0.5, 0.6), (0.0, 0.6, 0.19), "stiffness", "damping", "spring")
    m.add_force("strut", strut)
    m.add_force("steering", JointSpring(joint="rack", stiffness="steering", damping=500.0))
    m.start = Start(v={"lower": 1.0, "rack": 0.0, "hub": 50.0})
    return m


def _wishbone(mass: float, front: Vector, rear: Vector, ball: Vector) -> Inertia:
    """Two tubes from the pivots to the ball."""
    return Inertia.rod(mass=mass / 2, start=front, end=ball, radius=0.015) + Inertia.rod(
        mass=mass / 2, start=rear, end=ball, radius=0.015
    )


def delta_robot() -> Mechanism:
    """Delta robot: three arms turned by motors on the base carry a platform by pairs of parallel rods.

    Ten bodies, fifteen joints, five loops, three degrees of freedom, nothing redundant: the platform moves in space and
    does not turn. z is up and the robot hangs. The arms A1, A2, A3 turn about horizontal axes on a circle of the
    radius `base`, at 0, 120 and 240 degrees, downwards for a positive angle. Each rod has a universal joint
    on its arm and a ball on the platform; the rods of a pair are 2 * `half` apart. Reference pose: arms at `angle`
    below the horizontal. Motors hold the arms like a spring and damper; it starts at rest. The numbers are our own.

    Parameters of the mechanism: `base`, `arm`, `rod`, `platform` (radius of the circle of the balls), `half`, `angle`;
    `payload`; `stiffness`, `damping` of the motors and the torque `hold` that bears the weight; `g`.

    Examples
    --------
    >>> m = delta_robot()
    >>> len(m.bodies), len(m.joints), len(m.compile().topology.loops)
    (10, 15, 5)
    """
    m = Mechanism(
        "delta_robot",
        gravity=(0, 0, "-g"),
        parameters={
            "base": 0.2,
            "arm": 0.3,
            "rod": 0.7,
            "platform": 0.06,
            "half": 0.05,
            "angle": 0.4,
            "payload": 0.5,
            "stiffness": 40.0,
            "damping": 1.0,
            "hold": -4.0,
            "g": 9.81,
            "elbow": "base + arm*cos(angle)",
            "elbow_z": "-arm*sin(angle)",
            "down": "sqrt(rod**2 - (elbow - platform)**2)",
            "z": "elbow_z - down",
            "c1": 1.0,
            "s1": 0.0,
            "c2": "cos(2*pi/3)",
            "s2": "sin(2*pi/3)",
            "c3": "cos(4*pi/3)",
            "s3": "sin(4*pi/3)",
        },
    )
    plate = Inertia.cylinder(
        mass="0.3 + payload", radius="platform + half", length=0.03, axis=(0, 0, 1), at=(0, 0, "z")
    )
    m.add_body("platform", plate)
    for k in (1, 2, 3):
        shoulder, knee = _around(k, "base", "0", 0), _around(k, "elbow", "0", "elbow_z")
        arm = m.add_body(f"arm{k}", Inertia.rod(mass=0.6, start=shoulder, end=knee, radius=0.015))
        along = _around(k, "0", "1", 0)  # the direction of the motor's axis
        m.add_joint(f"A{k}", Revolute(axis=along), m.ground, arm, at=shoulder)
        m.add_motor(f"motor{k}", f"A{k}", torque="hold - stiffness*position - damping*speed")
        across = _around(k, "down", "0", "platform - elbow")  # perpendicular to the rods, in the plane of the arm
        for side, offset in (("a", "half"), ("b", "-half")):
            start, end = _around(k, "elbow", offset, "elbow_z"), _around(k, "platform", offset, "z")
            rod = m.add_body(f"rod{k}{side}", Inertia.rod(mass=0.1, start=start, end=end, radius=0.005))
            m.add_joint(f"U{k}{side}", Universal(axis1=along, axis2=across), arm, rod, at=start)
            m.add_joint(f"S{k}{side}", Spherical(), rod, "platform", at=end)
    return m


def _around(k: int, radial: str, tangential: str, z: float | str) -> Vector:
    """Vector by its parts in the plane of arm k of the delta robot, as formulas."""
    x = f"c{k}*({radial}) - s{k}*({tangential})"
    y = f"s{k}*({radial}) + c{k}*({tangential})"
    return x, y, z


def cardan_shaft() -> Mechanism:
    """Cardan shaft: two universal joints and a spline between parallel shafts; input at 20 rad/s.

    Four bodies, five joints, one loop, one degree of freedom, nothing redundant. The input turns about x, the middle
    shaft runs downwards at the angle `bend`, the output turns about an axis parallel to x. With the forks of the middle
    shaft in one plane (`phase` = 0) the output turns as evenly as the input, and only the middle shaft does not. With
    `phase` = pi/2 the speed ratio goes from cos(bend)^2 to 1/cos(bend)^2. The centres of the crosses lie on both
    shafts: the spline never moves, but without it one row would be redundant. The numbers are our own.

    Parameters of the mechanism: `bend`, `phase`; `length` of the middle shaft; `angle` of the input fork from y at the
    reference pose.

    Examples
    --------
    >>> m = cardan_shaft()
    >>> len(m.bodies), len(m.joints), len(m.compile().topology.loops)
    (4, 5, 1)
    """
    m = Mechanism(
        "cardan_shaft",
        parameters={
            "bend": 0.5,
            "phase": 0.0,
            "length": 0.6,
            "angle": 0.3,
            "c": "cos(bend)",
            "s": "sin(bend)",
            "turn": "atan2(sin(angle)*c, cos(angle))",  # of the middle shaft, from where its fork is across y
            "rear": "turn + phase",
            "ex": "length*c",
            "ez": "-length*s",
        },
    )
    first, second = (0, 0, 0), ("ex", 0, "ez")
    disc = Inertia.cylinder(mass=2.0, radius=0.1, length=0.03, axis=(1, 0, 0), at=(-0.15, 0, 0))
    shaft = m.add_body("input", disc + Inertia.rod(mass=1.0, start=(-0.2, 0, 0), end=first, radius=0.02))
    front = m.add_body("front", Inertia.rod(mass=1.0, start=first, end=("0.6*ex", 0, "0.6*ez"), radius=0.02))
    rear = m.add_body("rear", Inertia.rod(mass=1.0, start=("0.4*ex", 0, "0.4*ez"), end=second, radius=0.025))
    disc = Inertia.cylinder(mass=4.0, radius=0.12, length=0.03, axis=(1, 0, 0), at=("ex + 0.15", 0, "ez"))
    output = m.add_body("output", disc + Inertia.rod(mass=1.0, start=second, end=("ex + 0.2", 0, "ez"), radius=0.02))
    cross1 = Universal(axis1=(0, "cos(angle)", "sin(angle)"), axis2=("cos(turn)*s", "-sin(turn)", "cos(turn)*c"))
    cross2 = Universal(axis1=("cos(rear)*s", "-sin(rear)", "cos(rear)*c"), axis2=(0, "cos(rear)*c", "sin(rear)"))
    m.add_joint("in", Revolute(axis=(1, 0, 0)), m.ground, shaft, at=(-0.15, 0, 0))
    m.add_joint("cross1", cross1, shaft, front, at=first)
    m.add_joint("spline", Prismatic(axis=("ex", 0, "ez")), front, rear, at=("ex/2", 0, "ez/2"))
    m.add_joint("cross2", cross2, rear, output, at=second)
    m.add_joint("out", Revolute(axis=(1, 0, 0)), m.ground, output, at=("ex + 0.15", 0, "ez"))
    m.start = Start(v={"in": 20.0})
    return m
