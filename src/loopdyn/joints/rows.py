"""Building blocks of the constraint rows of cut joints.

A row is a direction `G` = (torque, force) in world axes: the load its multiplier puts on the child at M's
origin. With omega = omega_M - omega_F and v = v_M - v_F - omega_F x d (velocity of M's origin seen from F),

    dphi/dt = G_w . omega + G_v . v

so the parent gets -G_v at F's origin and the torque -(G_w + d x G_v). `gamma` collects all velocity terms:
G_w . (alpha_M - alpha_F) + G_v . (a_M - a_F - alpha_F x d) = gamma.

Each function writes rows k, k+1, ... and returns the next free index. F and M are the frames' axes in
world coordinates as rows (9 numbers), `d` the vector from F's origin to M's.
"""

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.spatial.plucker import add, centripetal, cross, dot, mul, put3, rot_t, row, scale, sub, transpose
from loopdyn.spatial.rotations import atan2, matrix_quaternion

ZERO = (0.0, 0.0, 0.0)


@inline
def displacement(f, d, wF, v, phi, G, gamma, k):
    """No motion along f, a direction fixed in F: phi = f . d."""
    phi[k] = dot(f, d)
    put3(G, k, 0, ZERO)
    put3(G, k, 3, f)
    gamma[k] = dot(f, add(scale(2.0, cross(wF, v)), centripetal(wF, d)))
    return k + 1


@inline
def directions(s, f, m, wF, wM, phi0, phi, G, gamma, k):
    """s (f . m - phi0) = 0 for directions f fixed in F and m fixed in M."""
    phi[k] = s * (dot(f, m) - phi0)
    put3(G, k, 0, scale(s, cross(m, f)))
    put3(G, k, 3, ZERO)
    rate = add(cross(cross(wM, m), f), cross(m, cross(wF, f)))
    gamma[k] = -s * dot(rate, sub(wM, wF))
    return k + 1


@inline
def tilt(F, M, wF, wM, phi, G, gamma, k):
    """z of M stays along z of F: two rows whose multipliers are the torques about x and y of F."""
    mz = row(M, 2)
    k = directions(-1.0, row(F, 1), mz, wF, wM, 0.0, phi, G, gamma, k)
    return directions(1.0, row(F, 0), mz, wF, wM, 0.0, phi, G, gamma, k)


@inline
def no_rotation(F, M, wF, wM, phi, G, gamma, k):
    """M does not turn against F: phi = 2 (x, y, z) of the relative quaternion, which only vanishes at identity.

    With e = (x, y, z) in F axes, w its scalar part and omega seen from F in F axes:
    2 e' = w omega - e x omega, 2 w' = -e . omega.
    """
    c, x, y, z = matrix_quaternion(mul(F, transpose(M)))
    e = (x, y, z)
    omega = rot_f(F, sub(wM, wF))
    # rate of change, seen from F, of the matrix (w 1 - e~) applied to omega
    rate_e = scale(0.5, sub(scale(c, omega), cross(e, omega)))
    rate_c = -0.5 * dot(e, omega)
    velocity = sub(scale(rate_c, omega), cross(rate_e, omega))
    # omega seen from F changes by alpha_M - alpha_F - omega_F x omega
    turning = cross(rot_f(F, wF), omega)
    velocity = sub(velocity, sub(scale(c, turning), cross(e, turning)))
    rx = rot_t(F, (c, z, -y))  # rows of w 1 - e~, in world axes
    ry = rot_t(F, (-z, c, x))
    rz = rot_t(F, (y, -x, c))
    phi[k] = 2.0 * x
    phi[k + 1] = 2.0 * y
    phi[k + 2] = 2.0 * z
    put3(G, k, 0, rx)
    put3(G, k + 1, 0, ry)
    put3(G, k + 2, 0, rz)
    put3(G, k, 3, ZERO)
    put3(G, k + 1, 3, ZERO)
    put3(G, k + 2, 3, ZERO)
    gamma[k] = -velocity[0]
    gamma[k + 1] = -velocity[1]
    gamma[k + 2] = -velocity[2]
    return k + 3


@inline
def rot_f(F, v):
    """Components of the world vector v along the axes (rows) of F."""
    return (dot(row(F, 0), v), dot(row(F, 1), v), dot(row(F, 2), v))


@inline
def screw(pitch, F, M, d, wF, wM, v, phi, G, gamma, k):
    """Slide along z of F equals pitch times the angle about it; the nearest whole turn is taken."""
    fx, fy, fz = row(F, 0), row(F, 1), row(F, 2)
    mx, my = row(M, 0), row(M, 1)
    omega = sub(wM, wF)
    # angle = atan2(n, c); n = fy.mx - fx.my, c = fx.mx + fy.my; gn, gc: their gradients for a rotation of M
    n = dot(fy, mx) - dot(fx, my)
    c = dot(fx, mx) + dot(fy, my)
    gn = sub(cross(mx, fy), cross(my, fx))
    gc = add(cross(mx, fx), cross(my, fy))
    rho = n * n + c * c
    g = scale(1.0 / rho, sub(scale(c, gn), scale(n, gc)))
    ax, ay = cross(wM, mx), cross(wM, my)
    bx, by = cross(wF, fx), cross(wF, fy)
    gn_rate = sub(add(cross(ax, fy), cross(mx, by)), add(cross(ay, fx), cross(my, bx)))
    gc_rate = add(add(cross(ax, fx), cross(mx, bx)), add(cross(ay, fy), cross(my, by)))
    n1, c1 = dot(gn, omega), dot(gc, omega)
    angle2 = (c * dot(gn_rate, omega) - n * dot(gc_rate, omega)) / rho - dot(g, omega) * 2.0 * (n * n1 + c * c1) / rho
    slide = dot(fz, d)
    angle = atan2(n, c)
    turns = np.floor((slide.real / pitch - angle.real) / (2.0 * np.pi) + 0.5)
    phi[k] = slide - pitch * (angle + 2.0 * np.pi * turns)
    put3(G, k, 0, scale(-pitch, g))
    put3(G, k, 3, fz)
    gamma[k] = pitch * angle2 + dot(fz, add(scale(2.0, cross(wF, v)), centripetal(wF, d)))
    return k + 1
