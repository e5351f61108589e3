"""Base of all joints: placement, and the contract of a joint type.

A joint joins frame F on its parent to frame M on its child. Both frames are orthonormal; joints with an
axis have it as z. `A` denotes the axes of F as rows, in the axes that parent and child share when all
joint coordinates are zero. A joint type is one file; `dispatch.py` chooses among them by code, and
`tests/contract/test_joints.py` tests all types against the contract. The file has

* a class with the user's data and the properties of the type (:class:`Joint`: all that it declares without a value),
  which measures the coordinates of a pose;
* ``rotation(A, par, q, i) -> E``: rotation of M against F, seen in the shared axes;
* ``motion(RF, RM, A, par, q, i, v, j, S) -> d, w, dd, cj, cl``: displacement `d` of M from F, relative
  angular velocity `w`, relative velocity `dd` of M's origin, all in world axes, and the velocity terms of
  the relative acceleration that are the joint's own:

      alpha_M = alpha_F + sum S_w a + omega_F x w + cj
      a_M     = a_F + alpha_F x d + omega_F x (omega_F x d) + 2 omega_F x dd + sum S_v a + cl

  Row j+k of `S` receives the motion subspace: twist of M against F at M's origin, angular part first;
* ``pose(par, q, i) -> d, E``: displacement and rotation of M against F, in F axes;
* ``read(par, d, E, q, i)``: the inverse. Among coordinates with the same pose, those nearest to q are written;
* ``rows(...)``: the constraint rows of the joint when it is cut (see :mod:`loopdyn.joints.rows`);
* ``coordinate(k, F, M, par, d)`` and ``wrench(k, F, M, par)``: a single coordinate, and the load on M at its origin
  whose power is speed k of the joint and no other one (see :mod:`loopdyn.joints.reading`);
* ``plus``, ``minus``, ``rate`` and ``mean_speeds`` if the coordinates are not additive
  (:mod:`loopdyn.joints.additive` has those of additive ones), ``wrench_rate`` if the wrenches are not fixed in F.

F and M are the axes of the frames as rows in world axes, `par` two constants of the joint (pitch; cosine and sine of
the angle between universal axes).
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from loopdyn.quantities.units import Path, Place, Resolver, Scalar, Spec, Vec2, Vec3, Vec4
from loopdyn.spatial.rotations import about_axis, perpendicular_frame, to_matrix

Array = NDArray[np.float64]

# Names of the rows that are a component of the wrench on M in F axes, in its order.
COMPONENTS = ("mx", "my", "mz", "fx", "fy", "fz")

# How M can rotate relative to F; for "about z", the angle is the coordinate of dimension angle.
Turning = Literal["none", "about z", "about two axes", "about a point"]

# Loads by which a bearing is selected, with the columns of the wrench on M (moment, force) in F axes.
BearingLoads = dict[str, tuple[int, ...]]
ABOUT_AXIS: BearingLoads = {
    "radial force": (3, 4), "axial force": (5,), "tilting moment": (0, 1), "axial moment": (2,)
}  # fmt: skip


class Rotation(Spec):
    """An orientation: ``quaternion`` (w, x, y, z), or ``axis`` and ``angle``, or ``rpy`` (roll, pitch, yaw).

    Roll, pitch and yaw turn about the fixed axes x, y, z in this order.

    Parameters
    ----------
    quaternion : (4,), optional
        w, x, y, z; of any length but zero.
    axis : (3,), optional
        Axis of the rotation by `angle`.
    angle : number, optional
        In units of angle.
    rpy : (3,), optional
        Roll, pitch and yaw in units of angle.

    Examples
    --------
    >>> Rotation(axis=(0, 0, 1), angle=0.5)
    Rotation(axis=(0.0, 0.0, 1.0), angle=0.5)
    """

    label: ClassVar[str] = "rotation"

    quaternion: "Vec4 | None" = None
    axis: "Vec3 | None" = None
    angle: "Scalar | None" = None
    rpy: "Vec3 | None" = None

    def resolve(self, r: Resolver, element: str, path: Path) -> Array:
        """Rotation matrix (3, 3)."""
        ways = [self.quaternion is not None, self.axis is not None or self.angle is not None, self.rpy is not None]
        if sum(ways) != 1:
            r.problem(element, "'rotation' is not clear", "Give one of: quaternion; axis and angle; rpy.", path)
            return np.eye(3)
        if self.quaternion is not None:
            q = r.vector(self.quaternion, "number", element, (*path, "quaternion"))
            if not np.linalg.norm(q) > 0.0:
                r.problem(element, "'quaternion' has length zero", "Use [1, 0, 0, 0] for no rotation.", path)
                return np.eye(3)
            return to_matrix(q)
        if self.rpy is not None:
            roll, pitch, yaw = r.vector(self.rpy, "angle", element, (*path, "rpy"))
            return about_axis((0, 0, 1), yaw) @ about_axis((0, 1, 0), pitch) @ about_axis((1, 0, 0), roll)
        if self.axis is None or self.angle is None:
            r.problem(element, "'rotation' needs both axis and angle", "Add the missing one.", path)
            return np.eye(3)
        axis = r.direction(self.axis, element, (*path, "axis"))
        return about_axis(axis, r.scalar(self.angle, "angle", element, (*path, "angle")))


def _rotation_shorthand(value: Any) -> Any:
    return {"quaternion": value} if isinstance(value, list | tuple | np.ndarray) else value


RotationField = Annotated[
    Rotation | None, BeforeValidator(_rotation_shorthand, json_schema_input_type=Rotation | Vec4 | None)
]


class Frame(Spec):
    """A frame on a body: position and orientation in the body's own frame.

    The body's own frame has world axes and the world origin at the reference pose unless the body was
    given a pose, so without poses these are world coordinates.

    Parameters
    ----------
    position : (3,)
        In units of length.
    rotation : Rotation or quaternion, optional
        By default the axes of the body.
    """

    label: ClassVar[str] = "frame"

    position: "Vec3" = (0.0, 0.0, 0.0)
    rotation: "RotationField" = None

    def resolve(self, r: Resolver, element: str, path: Path) -> tuple[Array, Array]:
        """Position (3) and rotation matrix (3, 3)."""
        p = r.vector(self.position, "length", element, (*path, "position"))
        R = np.eye(3) if self.rotation is None else self.rotation.resolve(r, element, (*path, "rotation"))
        return p, R


class Rebound(Spec):
    """An impact at the limit of a joint: ``rebound`` is the speed after it over that before, 0 to 1.

    Parameters
    ----------
    rebound : number
        Without unit.

    Examples
    --------
    >>> Rebound(0.5)
    Rebound(rebound=0.5)
    """

    label: ClassVar[str] = "at_limit"

    rebound: "Scalar"


class Joint(Spec):
    """Base of all joint types: which bodies it joins, where, and its limits.

    Parameters
    ----------
    parent, child : str
        Names of the bodies; ``"ground"`` is the fixed frame.
    at : (3,), optional
        Place of the joint in world coordinates at the reference pose. Its axes are then world axes and its
        coordinates are zero at the reference pose.
    parent_frame, child_frame : str or Frame, optional
        Instead of `at`: frames on the two bodies, given or by name. Axes are then meant in these frames, and
        the coordinates at the reference pose follow from the poses of the bodies.
    limits : (2,) or mapping, optional
        Range of the coordinate; for several coordinates a mapping, e.g. ``{"angle": [-1, 1]}``.
    at_limit : "warn", "stop" or Rebound, optional
        Behaviour of a run when a coordinate reaches the end of its range: continue with a warning (the default), stop,
        or rebound: ``{"rebound": 0.5}``.
    armature : number or mapping, optional
        Inertia of a rotor that turns with the coordinate (that of the motor times the gear ratio squared): kg m^2 for
        an angle, kg for a slide; for several coordinates a mapping, e.g. ``{"angle": 0.01}``; for a ball one number for
        its three rotations. It adds to the diagonal of the mass matrix. The rotor has no weight and no gyroscopic
        torque, and its driving torque acts between the two bodies. A joint with armature cannot be cut.
    """

    kind: ClassVar[int]  # code in kernels: the place in dispatch.JOINT_TYPES
    coordinates: ClassVar[tuple[str, ...]]  # suffixes of the labels in q
    speeds: ClassVar[tuple[str, ...]]  # suffixes of the labels in v
    dimensions: ClassVar[tuple[str, ...]]  # dimension of each coordinate: angle, length or number (quaternion)
    speed_dimensions: ClassVar[tuple[str, ...]]  # dimension of the integral of each speed: angle or length
    rows_when_cut: ClassVar[tuple[str, ...]]  # names of the constraint rows, in F axes
    row_dimensions: ClassVar[tuple[str, ...]]  # dimension of each row: angle or length
    rows_vary: ClassVar[bool] = False  # whether the wrenches of its rows, seen in F, depend on the pose
    turning: ClassVar[Turning]
    reversed_by_sign: ClassVar[bool]  # whether the motion seen from the child is the same with all axes reversed
    constants: ClassVar[dict[str, str]] = {}  # fields that give `par`, in its order, with their dimensions
    bearing_loads: ClassVar[BearingLoads] = {"force": (3, 4, 5), "moment": (0, 1, 2)}

    type: str
    # Texts, as signatures show them.
    parent: "str | None" = None
    child: "str | None" = None
    at: "Place | None" = None
    parent_frame: "str | Frame | None" = None
    child_frame: "str | Frame | None" = None
    limits: "Vec2 | dict[str, Vec2] | None" = None
    at_limit: 'Literal["warn", "stop"] | Rebound | None' = None
    armature: "Scalar | dict[str, Scalar] | None" = None

    def axes(self, r: Resolver, element: str, path: Path) -> tuple[Array, tuple[float, float]]:
        """Axes of F as rows, in the axes of the placement, and the two constants `par`."""
        return np.eye(3), (0.0, 0.0)

    @staticmethod
    def axes_in_frame(par: tuple[float, float]) -> dict[str, Array]:
        """Fields that give the directions of the joint, seen in F; empty if its axes are those of the placement."""
        return {}

    @staticmethod
    def measure(E: Array, d: Array, par: tuple[float, float]) -> Array:
        """Coordinates of a pose: rotation `E` and position `d` of M seen from F, in F axes."""
        raise NotImplementedError

    @classmethod
    def row_wrenches(cls, E: Array, par: tuple[float, float]) -> Array:
        """Wrench (torque, force) on M of each row of the closed joint, in F axes; `E`: rotation of M in F."""
        return np.eye(6)[[COMPONENTS.index(row) for row in cls.rows_when_cut]]

    @classmethod
    def is_periodic(cls, k: int) -> bool:
        """Whether coordinate k is an angle whose full turns the pose does not determine."""
        return cls.dimensions[k] == "angle"

    @classmethod
    def is_scalar(cls) -> bool:
        """Whether each speed is the rate of one coordinate; not so with a quaternion."""
        return len(cls.coordinates) == len(cls.speeds)

    @classmethod
    def spins(cls) -> list[int]:
        """Speeds of a rotation about a point fixed by the joint: a rod between two such joints may spin idly."""
        held = cls.turning == "about a point" and bool(cls.rows_when_cut)
        return [k for k, dimension in enumerate(cls.speed_dimensions) if held and dimension == "angle"]

    @classmethod
    def gradient(cls, k: int, E: Array) -> Array:
        """Gradient of coordinate k, an angle or a length, by the speeds; `E`: rotation of M in F."""
        if not cls.is_scalar():
            raise NotImplementedError(f"{cls.__name__}: joints with a quaternion must define gradient()")
        row: Array = np.eye(len(cls.speeds))[k]
        return row

    @staticmethod
    def curvature(v: Array) -> Array:
        """Second derivative of xi in q(s) = q (+) xi(s) for constant speeds v, at xi = 0."""
        return np.zeros(len(v))

    def labels(self, name: str) -> tuple[list[str], list[str]]:
        """Labels of the coordinates and of the speeds of the joint called `name`."""
        q = [f"{name}.{s}" if s else name for s in self.coordinates]
        v = [f"{name}.{s}" if s else name for s in self.speeds]
        return q, v


class AxisJoint(Joint):
    """A joint with one axis: z of F and M."""

    axis: "Vec3"

    def axes(self, r: Resolver, element: str, path: Path) -> tuple[Array, tuple[float, float]]:
        """Frame with the axis as z."""
        return axis_frame(r.direction(self.axis, element, (*path, "axis"))), (0.0, 0.0)

    @staticmethod
    def axes_in_frame(par: tuple[float, float]) -> dict[str, Array]:
        """The axis is z."""
        return {"axis": np.array([0.0, 0.0, 1.0])}


def axis_frame(axis: Array) -> Array:
    """Frame of :func:`perpendicular_frame` for an axis alone, read-only: joints of a model share few axes.

    Examples
    --------
    >>> axis_frame(np.array([0.0, 0.0, 2.0]))[2]
    array([0., 0., 1.])
    """
    return _axis_frame(axis.tobytes())


@lru_cache(maxsize=1024)
def _axis_frame(axis: bytes) -> Array:
    frame = perpendicular_frame(np.frombuffer(axis))
    frame.flags.writeable = False
    return frame


def turn_about_z(E: Array) -> float:
    """Angle of the rotation E about z, in (-pi, pi]."""
    return float(np.arctan2(E[1, 0] - E[0, 1], E[0, 0] + E[1, 1]))


def limits_of(joints: Mapping[str, Joint]) -> dict[str, tuple[Any, Any, Any]]:
    """Bounds of joint coordinates by label as they are written, and the restitution of `at_limit` or None."""
    found = {}
    for name, joint in joints.items():
        given = joint.limits if isinstance(joint.limits, dict) else {"": joint.limits}
        for suffix, bounds in given.items():
            if bounds is not None:
                rebound = getattr(joint.at_limit, "rebound", None)
                found[f"{name}.{suffix}" if suffix else name] = (*bounds, rebound)
    return found
