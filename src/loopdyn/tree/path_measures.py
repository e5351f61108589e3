"""Energies, momenta and residuals of the constraints at many states, in one call."""

from loopdyn.engine.jit import kernel
from loopdyn.engine.records import open_work
from loopdyn.tree.energies import energy
from loopdyn.tree.jacobian import constraint_terms


@kernel
def measures(ints, floats, work, path, J, balance, residual):
    """At each state of `path` = (t, q, v, a): balance (n, 8) as `energy` gives it, and residual (n, 3, nc).

    Residuals are those of position, velocity and acceleration; J (nc, nv) is scratch. With user constraints n is 1, and
    their rows must have been written to `work`, J and residual[:, 1] before.
    """
    t, q, v, a = path
    w = open_work(ints, work)
    for k in range(t.size):
        w.t[0], w.q[:], w.v[:] = t[k], q[k], v[k]
        energy(ints, floats, work, balance[k])  # places the bodies
        if J.shape[0] > 0:
            constraint_terms(ints, floats, work, J, residual[k, 1])
        for i in range(J.shape[0]):
            found = -w.gamma[i]
            for j in range(J.shape[1]):
                found += J[i, j] * a[k, j]
            residual[k, 0, i], residual[k, 2, i] = w.phi[i], found
