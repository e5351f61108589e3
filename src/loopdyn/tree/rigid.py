"""Rigid-body inertia and inertial forces of each body, about its reference point, world axes."""

from loopdyn.engine.jit import inline
from loopdyn.engine.records import ARM_COM, COM, IH, IJ, IM, INERTIA, MASS, PV, PW, R, W
from loopdyn.spatial.plucker import (
    add,
    centripetal,
    cross,
    get3,
    get6,
    get9,
    parallel_axis,
    put3,
    put6,
    put9,
    rot,
    scale,
    sub,
    symrot,
    symv,
)


@inline(always=True)
def rigid_body(model, work, i, g):
    """Rigid inertia (IJ, IH, IM) and bias wrench (PW, PV) of body i.

    The bias is the wrench needed for zero acceleration of the reference point and zero angular acceleration: gyroscopic
    and centripetal terms, less gravity. Applied loads are subtracted later.
    """
    B = work.body
    Ri, w, m = get9(B, i, R), get3(B, i, W), model.body[i, MASS]
    c = rot(Ri, get3(model.body, i, COM))
    I = symrot(Ri, get6(model.body, i, INERTIA))
    x, y, z = scale(m, c)
    put3(B, i, ARM_COM, c)
    put6(B, i, IJ, parallel_axis(I, m, c))
    put9(B, i, IH, (0.0, -z, y, z, 0.0, -x, -y, x, 0.0))
    put6(B, i, IM, (m, m, m, 0.0, 0.0, 0.0))
    f = scale(m, sub(centripetal(w, c), g))
    put3(B, i, PV, f)
    put3(B, i, PW, add(cross(w, symv(I, w)), cross(c, f)))
