"""Energies, momenta and residuals of the constraints at many states, in one call."""

from loopdyn.engine.jit import kernel
from loopdyn.engine.records import E_CUT, E_FREEDOM, L_COUNT, L_FIRST, L_ROW, open_model, open_work
from loopdyn.tree.energies import energy
from loopdyn.tree.jacobian import constraint_rows, linear_terms, reduce_rows
from loopdyn.tree.kinematics import accelerations


@kernel
def measures(ints, floats, work, path, balance, residual):
    """At each state of `path` = (t, q, v, a): balance (n, 8) as `energy` gives it, and residual (n, 3, nc).

    Residuals are those of position, velocity and acceleration, without a Jacobian: the rows are evaluated for the
    accelerations of the bodies. Those of user constraints are left as they are.
    """
    t, q, v, a = path
    model, w = open_model(ints, floats), open_work(ints, work)
    rows = model.nc - model.n_user
    for k in range(t.size):
        w.t[0], w.q[:], w.v[:] = t[k], q[k], v[k]
        energy(ints, floats, work, balance[k])  # places the bodies
        if rows == 0:
            continue
        w.a[:] = a[k]
        accelerations(model, w)
        constraint_rows(model, w)
        reduce_rows(model, w, residual[k, 1])  # at these accelerations gamma becomes gamma - J a
        for n in range(model.linear.shape[0]):
            row, first = model.linear[n, L_ROW], model.linear[n, L_FIRST]
            w.phi[row], residual[k, 1, row], missing, _ = linear_terms(model, w, n)
            for e in range(first, first + model.linear[n, L_COUNT]):
                if model.entry[e, E_CUT] < 0:  # those of cut joints move with their bodies
                    missing -= w.factor[e] * w.a[model.entry[e, E_FREEDOM]]
            w.gamma[row] = missing
        for i in range(rows):
            residual[k, 0, i], residual[k, 2, i] = w.phi[i], -w.gamma[i]
