"""Motion of minimum kinetic energy for given rates of the constraint rows, for the analysis of singular poses."""

from loopdyn.engine.jit import kernel
from loopdyn.engine.records import open_model, open_work
from loopdyn.loops.elimination.layout import open_elimination, open_plan
from loopdyn.loops.elimination.outward import of_severed_joints, respond


@kernel
def minimum_energy_motion(ints, floats, work):
    """E.step <- G^-1 E.step, E.rates = M^-1 J^T E.step, with G = J M^-1 J^T as the last `accelerate` factorised it."""
    model, data = open_model(ints, floats), open_work(ints, work)
    plan, E = open_plan(ints), open_elimination(ints, work)
    respond(ints, floats, work)
    of_severed_joints(model, data, plan, E.motion, E.rates)
    return 0
