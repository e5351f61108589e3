"""Angles of cut joints with their full turns (:mod:`loopdyn.system.cut_angles`)."""

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import C_KIND, FORCE_ON, ON_FREEDOM, T_BODY, open_model, open_work
from loopdyn.forces.freedom import freedom_coordinate
from loopdyn.forces.measured import term_motion
from loopdyn.joints.dispatch import nearest_turn
from loopdyn.tree.jacobian import entry_motion, freedom_of_cut
from loopdyn.tree.kinematics import kinematics


@inline
def count_turns(model, work):
    """Read the counted coordinates from the pose, each with the turns that bring it nearest to its previous value.

    Returns the largest of their rates.
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


@kernel
def readings(ints, floats, work, out):
    """Coordinates that forces, entries of relations and measures in laws depend on, at the state in `work`."""
    model, data = open_model(ints, floats), open_work(ints, work)
    kinematics(model, data)
    forces = model.force.shape[0]
    for n in range(forces):
        out[n] = 0.0
        if model.force[n, FORCE_ON] == ON_FREEDOM:
            out[n] = freedom_coordinate(model, data, n)
    for e in range(model.entry.shape[0]):
        out[forces + e] = entry_motion(model, data, e)[0]
    first = forces + model.entry.shape[0]
    for k in range(model.term.shape[0]):
        out[first + k] = 0.0 if model.term[k, T_BODY] >= 0 else term_motion(model, data, k)[0]
