"""Distribution of the loads of all bodies over the joints at all states of a path, in one call."""

from loopdyn.engine.jit import inline, kernel, whole, window
from loopdyn.engine.records import open_model, open_work
from loopdyn.loops.distribution.layout import DistributionScratch, DistributionTables
from loopdyn.loops.distribution.passes import distribute, take_motors, write_wrenches
from loopdyn.loops.elimination.passes import balance


@inline(always=True)
def table(array):
    """View of a matrix whose owners are not counted, see `engine.jit.window`."""
    return window(array.ravel(), 0, array.shape[0], array.shape[1])


@inline(always=True)
def line(array):
    """View of a vector, as `table`."""
    return whole(array)


@inline(always=True)
def open_structure(p):
    """Views of the structure."""
    return DistributionTables(
        table(p.at),
        table(p.slot),
        table(p.acting),
        table(p.related),
        table(p.inner),
        line(p.pair),
        line(p.couple),
        table(p.unknown),
        line(p.below),
        line(p.target),
        table(p.varying),
        line(p.row_joint),
    )


@inline(always=True)
def open_scratch(s):
    """Views of the scratch."""
    return DistributionScratch(
        table(s.load),
        table(s.missing),
        table(s.column),
        table(s.inner),
        table(s.joint),
        line(s.share),
        line(s.matrix),
        line(s.size),
        line(s.natural),
        line(s.weakest),
        line(s.inverse),
        table(s.x),
        table(s.y),
        line(s.first),
        table(s.direction),
        line(s.root),
    )


@kernel(short_loops=True)
def distribute_along(arrays, joints, structure, scratch, which, path, motors, norm, out):
    """Reactions at the states `which` of a path.

    Parameters: `arrays` = (ints, floats, work) of the system with all joints among the cuts; `joints`: body and cut of
    each tree joint; `path` = (t, q, v, a, tau, user rows); `motors` = (cuts and freedoms, loads at each state);
    `norm` = (probes, weights of the components of each joint, length, `least` of `write_wrenches`); `out` = (wrenches
    (n, joints, 6), unique (n, joints, 6), loads of other rows (n, m), summary (n, N_SUMMARY)).
    """
    ints, floats, work = arrays
    t, q, v, a, tau, user = path
    probes, weights, length, least = norm
    wrench, unique, others, summary = out
    model, w, plan, s = (
        open_model(ints, floats),
        open_work(ints, work),
        open_structure(structure),
        open_scratch(scratch),
    )
    joint, of_row = table(joints), (table(probes), table(weights))
    for k in which:
        w.t[0] = t[k]
        for m in range(q.shape[1]):
            w.q[m] = q[k, m]
        for m in range(v.shape[1]):
            w.v[m], w.a[m], w.tau[m] = v[k, m], a[k, m], tau[k, m]
        balance(ints, floats, work, joint, s.load)
        take_motors(model, w, s, motors[0], motors[1][k])
        distribute(model, w, plan, s, user[k], of_row[0], of_row[1], length, summary[k])
        write_wrenches(plan, s, wrench[k], unique[k], others[k], least)
