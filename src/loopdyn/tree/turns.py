"""Angles of cut joints with their full turns (:mod:`loopdyn.system.cut_angles`)."""

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import C_KIND, E_COORDINATE, E_CUT, E_FREEDOM, open_model, open_work
from loopdyn.forces.base import JOINT_FRICTION, JOINT_SPRING, MOTOR
from loopdyn.joints.dispatch import counted_angle, nearest_turn
from loopdyn.tree.jacobian import freedom_of_cut
from loopdyn.tree.kinematics import kinematics


@inline
def count_turns(model, work):
    """Set the counted coordinates to what the pose shows, each with the turns that bring it nearest to what it was.

    Returns the fastest of their rates.
    """
    fastest = 0.0
    first = model.nq - model.counted.shape[0]
    for n in range(model.counted.shape[0]):
        cut, k = model.counted[n, 0], model.counted[n, 1]
        x, dx, _, _, _, _ = freedom_of_cut(model, work, cut, k)
        work.q[first + n] = nearest_turn(model.cut[cut, C_KIND], k, x, work.q[first + n])
        fastest = max(fastest, dx.real, -dx.real)
    return fastest


@kernel
def count(ints, floats, work):
    """`count_turns` at the state in `work`."""
    model, data = open_model(ints, floats), open_work(ints, work)
    kinematics(model, data)
    return count_turns(model, data)


@inline
def reading(model, work, reader, cut, index, coordinate):
    """Coordinate that a force or an entry of a relation reads; zero where it has none."""
    if cut >= 0:
        x = freedom_of_cut(model, work, cut, index)[0]
        x = counted_angle(model, work, reader, model.cut[cut, C_KIND], index, x)
    elif coordinate >= 0:
        x = work.q[coordinate]
    else:
        x = 0.0 * work.t[0]
    return x


@kernel
def readings(ints, floats, work, out):
    """Coordinates that forces and entries of relations read (forces + entries) at the state in `work`."""
    model, data = open_model(ints, floats), open_work(ints, work)
    kinematics(model, data)
    forces = model.force.shape[0]
    for n in range(forces):
        code = model.force[n, 0]
        out[n] = 0.0
        if code == JOINT_SPRING or code == JOINT_FRICTION or code == MOTOR:
            out[n] = reading(model, data, n, model.force[n, 1], model.force[n, 2], model.force[n, 3])
    for e in range(model.entry.shape[0]):
        cut, index, coordinate = model.entry[e, E_CUT], model.entry[e, E_FREEDOM], model.entry[e, E_COORDINATE]
        out[forces + e] = reading(model, data, forces + e, cut, index, coordinate)
