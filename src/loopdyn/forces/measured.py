"""Terms that laws of forces read through measures: motions of points and of joint coordinates.

A measure in a law is a part of the program of the law (:mod:`loopdyn.system.law_terms`). Its variables follow those of
the law: six for each term, of a point its position and velocity in world axes, of a joint its coordinate and speed.
"""

from loopdyn.engine.jit import inline
from loopdyn.engine.records import T_BODY, T_COORDINATE, T_CUT, T_FREEDOM
from loopdyn.forces.freedom import cut_motion, tree_motion
from loopdyn.forces.loading import LAW_VARIABLES, body_point
from loopdyn.spatial.plucker import get3

TERM_VARIABLES = 6


@inline
def term_motion(model, work, k):
    """Coordinate and speed of the joint of term k, with its full turns."""
    if model.term[k, T_CUT] < 0:
        return tree_motion(work, model.term[k, T_FREEDOM], model.term[k, T_COORDINATE])
    reader = model.force.shape[0] + model.entry.shape[0] + k
    found = cut_motion(model, work, model.term[k, T_CUT], model.term[k, T_FREEDOM], reader)
    return found[0], found[1]


@inline
def put_terms(model, work):
    """Write the values of all terms into the variables of programs; poses and velocities must be known."""
    jets = work.jets
    for k in range(model.term.shape[0]):
        at, body = LAW_VARIABLES + TERM_VARIABLES * k, model.term[k, T_BODY]
        if body >= 0:
            x, v = body_point(work.body, body, get3(model.term_point, k, 0))
            for c in range(3):
                jets[at + c, 0] = x[c]
                jets[at + 3 + c, 0] = v[c]
        else:
            jets[at, 0], jets[at + 1, 0] = term_motion(model, work, k)
