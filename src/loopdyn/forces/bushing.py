"""Bushing: six springs and dampers between a frame on one body and a frame on another."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.engine.records import FORCE_BODY1, FORCE_BODY2, FORCE_TORQUE, ON_BODIES, W
from loopdyn.forces.base import Force, Places, Record, check_not_negative
from loopdyn.forces.loading import body_frame, body_point, wrench_pair
from loopdyn.joints.base import RotationField
from loopdyn.joints.rows import rot_f
from loopdyn.quantities.units import Path, Place, Resolver, Vec3
from loopdyn.spatial.plucker import cross, dot, get3, get9, mul, rot_t, sub, transpose
from loopdyn.spatial.rotations import matrix_quaternion, quaternion_log

BUSHING = 5
# A frame on each body: point and axes, as rows, in the body's axes; then coefficients about and along the axes.
POINT1, AXES1, POINT2, AXES2 = 0, 3, 12, 15
ANGULAR_STIFFNESS, STIFFNESS, ANGULAR_DAMPING, DAMPING = 24, 27, 30, 33


class Bushing(Force):
    """An elastic connection in three directions and about three axes.

    The frames coincide at the reference pose, at the world point `at`, turned by `rotation`. With d the
    displacement of the second frame from the first and theta its rotation vector, both in axes of the first,
    the load on body 2 is ``-stiffness*d - damping*rate`` and the same for the rotation. The force acts at the
    origin of the second frame. As a load of a run it is one number: the size of the force, or of the torque where
    there is no stiffness and damping along the axes.

    Parameters
    ----------
    body1, body2 : str
        Names of the bodies.
    at : (3,)
        Place, in world coordinates at the reference pose, in units of length.
    rotation : Rotation, optional
        Orientation of the axes; by default world axes.
    stiffness, damping : (3,)
        Along the axes: force per length, force times second per length.
    angular_stiffness, angular_damping : (3,)
        About the axes: torque per angle, torque times second per angle.

    Examples
    --------
    >>> Bushing(body1="frame", body2="arm", at=(0, 0, 0), stiffness=(1e6, 1e6, 1e5)).stiffness
    (1000000.0, 1000000.0, 100000.0)
    """

    label: ClassVar[str] = "bushing"
    code: ClassVar[int] = BUSHING
    acts_on: ClassVar[int] = ON_BODIES
    stores_energy: ClassVar[bool] = True

    type: Literal["bushing"] = "bushing"
    body1: str
    body2: str
    at: Place
    rotation: RotationField = None
    stiffness: Vec3 = (0.0, 0.0, 0.0)
    damping: Vec3 = (0.0, 0.0, 0.0)
    angular_stiffness: Vec3 = (0.0, 0.0, 0.0)
    angular_damping: Vec3 = (0.0, 0.0, 0.0)

    def bodies(self) -> tuple[str, ...]:
        """Its two bodies."""
        return self.body1, self.body2

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """Bodies; point and axes on each; angular and linear stiffness, angular and linear damping."""
        bodies = [places.body(getattr(self, key), element, (*path, key)) for key in ("body1", "body2")]
        at = r.vector(self.at, "length", element, (*path, "at"))
        R = np.eye(3) if self.rotation is None else self.rotation.resolve(r, element, (*path, "rotation"))
        coefficients: list[float] = []
        for key in ("angular_stiffness", "stiffness", "angular_damping", "damping"):
            values = r.vector(getattr(self, key), key, element, (*path, key))
            for value in values:
                check_not_negative(r, element, path, **{key: float(value)})
            coefficients.extend(values)
        if min(bodies) < 0:
            return None
        if bodies[0] == bodies[1]:
            r.problem(element, "joins a body to itself", "Name two different bodies.", (*path, "body2"))
            return None
        floats: list[float] = []
        for body in bodies:
            floats.extend(places.point(body, at))
            floats.extend(places.axes(body, R).T.ravel())  # rows are the axes
        turns_only = not any(coefficients[3:6]) and not any(coefficients[9:12]) and any(coefficients)
        return Record((bodies[0], bodies[1]), floats=[*floats, *coefficients], torque=turns_only)


@inline
def frames(model, work, n):
    """Axes of the first frame in the world; of the second in those of the first: displacement, rotation vector."""
    B, data = work.body, model.force_data
    x1, _ = body_point(B, model.force[n, FORCE_BODY1], get3(data, n, POINT1))
    x2, _ = body_point(B, model.force[n, FORCE_BODY2], get3(data, n, POINT2))
    F = body_frame(B, model.force[n, FORCE_BODY1], get9(data, n, AXES1))
    M = body_frame(B, model.force[n, FORCE_BODY2], get9(data, n, AXES2))
    return F, rot_f(F, sub(x2, x1)), quaternion_log(matrix_quaternion(mul(F, transpose(M))))


@inline
def act(model, work, n):
    """Six springs and dampers between frame 1 on body i and frame 2 on body j."""
    B, data = work.body, model.force_data
    i, j = model.force[n, FORCE_BODY1], model.force[n, FORCE_BODY2]
    x1, v1 = body_point(B, i, get3(data, n, POINT1))
    x2, v2 = body_point(B, j, get3(data, n, POINT2))
    F, d, theta = frames(model, work, n)
    w1 = get3(B, i, W)
    rate = rot_f(F, sub(sub(v2, v1), cross(w1, sub(x2, x1))))
    spin = rot_f(F, sub(get3(B, j, W), w1))
    f = resist(get3(data, n, STIFFNESS), d, get3(data, n, DAMPING), rate)
    m = resist(get3(data, n, ANGULAR_STIFFNESS), theta, get3(data, n, ANGULAR_DAMPING), spin)
    wrench_pair(B, i, j, x2, rot_t(F, m), rot_t(F, f))
    return np.sqrt(dot(m, m)) if model.force[n, FORCE_TORQUE] == 1 else np.sqrt(dot(f, f))


@inline
def resist(k, d, c, rate):
    return (-k[0] * d[0] - c[0] * rate[0], -k[1] * d[1] - c[1] * rate[1], -k[2] * d[2] - c[2] * rate[2])


@inline
def energy(model, work, n):
    _, d, theta = frames(model, work, n)
    kt, k = get3(model.force_data, n, ANGULAR_STIFFNESS), get3(model.force_data, n, STIFFNESS)
    turned = kt[0] * theta[0] * theta[0] + kt[1] * theta[1] * theta[1] + kt[2] * theta[2] * theta[2]
    return 0.5 * (turned + k[0] * d[0] * d[0] + k[1] * d[1] * d[1] + k[2] * d[2] * d[2])
