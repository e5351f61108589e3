"""Mechanisms made from others, for tests that compare them."""

from __future__ import annotations

import loopdyn as ld


def scaled(m: ld.Mechanism, factor: float) -> ld.Mechanism:
    """All lengths, and with them gravity, times `factor`; masses as they are, forces left out.

    For mechanisms whose joints are placed in the world and whose bodies have no pose of their own. It moves as the
    first one does; forces are `factor` times as large, moments `factor` squared.
    """
    r = m.resolver()
    other = ld.Mechanism(m.name, gravity=factor * r.vector(m.gravity, "acceleration", "", ()))
    for name, body in m.bodies.items():
        mass, com, inertia = body.resolve(r, name, ())
        other.add_body(name, ld.Inertia(mass, factor * com, factor**2 * inertia))
    for name, joint in m.joints.items():
        change = {"at": tuple(factor * r.vector(joint.at, "length", "", ()))}
        for key in ("axis", "axis1", "axis2", "normal", "x"):
            if getattr(joint, key, None) is not None:
                change[key] = tuple(r.vector(getattr(joint, key), "number", "", ()))
        if joint.type == "helical":
            change["pitch"] = factor * joint.pitch
        other.joints[name] = joint.model_copy(update=change)
    return other
