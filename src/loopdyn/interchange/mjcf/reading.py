"""Reading MJCF, MuJoCo's format.

The `mujoco` package compiles the file, so that defaults, frames and inertia rules are its own; the compiled model
becomes a mechanism. A joint keeps its name and its coordinate (`ref` included). Several joints on one body become a
chain of massless bodies, which is exactly what MuJoCo computes. Equalities become joints and relations that hold
exactly, where MuJoCo's are soft.
"""

from __future__ import annotations

import os
import re
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.draft import missing
from loopdyn.interchange.markup import MarkupSource, is_text
from loopdyn.interchange.mjcf.actuators import read_actuators
from loopdyn.interchange.mjcf.equalities import read_equalities
from loopdyn.interchange.mjcf.files import Files
from loopdyn.interchange.mjcf.imported import ImportedMJCF
from loopdyn.interchange.mjcf.keyframes import chosen_keyframe, set_start
from loopdyn.interchange.mjcf.loads import read_joint_loads, read_tendons
from loopdyn.interchange.mjcf.model import CompiledModel
from loopdyn.interchange.mjcf.tree import read_armature, read_body, set_poses
from loopdyn.interchange.report import Report
from loopdyn.quantities.units import LARGEST

READ_ARRAYS = ("body_", "jnt_", "dof_", "eq_data", "actuator_", "tendon_", "site_", "key_q", "qpos", "geom_pos")
UNIT_LENGTH = 1e-6  # by which MuJoCo's unit vectors may differ from length one


def read_mjcf(
    source: str | os.PathLike[str], *, keyframe: str | int | None = None, folder: str | os.PathLike[str] | None = None
) -> ImportedMJCF:
    """Read a model of MuJoCo (MJCF), loops included. Needs the extra ``loopdyn[mjcf]``.

    Parameters
    ----------
    source : str or Path
        Name of the file, or its text.
    keyframe : str or int, optional
        Keyframe to start from, by name or number: its pose is the reference pose. By default ``"qpos0"``, at rest; the
        first keyframe if the model has loops that ``qpos0`` leaves open, or closes outside the limits of joints, and
        the keyframe does not.
    folder : str or Path, optional
        Folder that included files and meshes must be in (or below it); by default that of the file. A model given as
        text reads no file without it.

    Returns
    -------
    ImportedMJCF
        ``mechanism``, ``report``, and the correspondence with ``qpos`` and ``qvel``.

    Raises
    ------
    ModelError
        If the file cannot be read or MuJoCo refuses it.

    Examples
    --------
    >>> text = '''<mujoco><worldbody><body name="arm"><joint name="A" axis="0 1 0"/>
    ... <geom type="capsule" size=".02" fromto="0 0 0 .5 0 0"/></body></worldbody></mujoco>'''
    >>> found = read_mjcf(text)
    >>> found.mechanism.joints["A"].type
    'revolute'
    """
    try:
        import mujoco
    except ImportError:
        raise missing("mujoco", "mjcf", "MJCF") from None
    file = None if is_text(source) else FilePath(os.fspath(source))
    inside = FilePath(folder) if folder is not None else None if file is None else file.parent
    opened = MarkupSource(file, str(source) if file is None else None, "mujoco", ".xml")
    report = Report(f"{opened.shown}: MJCF to loopdyn")
    files = Files(opened, file, inside, report)
    text = files.standalone()
    opened.check()
    try:
        model = mujoco.MjModel.from_xml_string(text, files.assets)
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise ModelError([_refused(str(error), opened.shown)]) from None
    _check_numbers(model, opened.shown)
    return _read(CompiledModel(mujoco, model, opened.shown, report), keyframe)


def _read(model: CompiledModel, keyframe: str | int | None) -> ImportedMJCF:
    m, draft = model.m, model.draft
    gravity = np.zeros(3) if model.disabled("GRAVITY") else np.array(m.opt.gravity)
    draft.data["gravity"] = gravity.tolist()
    key = chosen_keyframe(model, keyframe)
    set_poses(model, m.qpos0 if key is None else m.key_qpos[key])
    for b in range(1, m.nbody):
        read_body(model, b, gravity)
    _flags(model)
    read_armature(model)
    for j in model.joints:
        read_joint_loads(model, j)
    compensated = [j.name for k, j in enumerate(model.joints) if m.jnt_actgravcomp[k]]
    if compensated and np.any(m.body_gravcomp):
        model.report.changed.append(
            "gravity compensation acts on the bodies, not as a part of the actuators (actuatorgravcomp), and "
            f"actuatorfrcrange does not limit it: {', '.join(compensated)}"
        )
    if m.neq and not (model.disabled("EQUALITY") or model.disabled("CONSTRAINT")):
        read_equalities(model)
    read_tendons(model)
    if not model.disabled("ACTUATION"):
        read_actuators(model, key)
    _rest(model)
    if key is not None:
        set_start(model, key)
    report = model.report
    sections = ("bodies", "joints", "constraints", "contacts", "forces")
    report.carried[:0] = [f"{len(draft.data[s])} {s}" for s in sections if draft.data[s]]
    if model.loops:
        report.carried.append(f"loops closed by: {', '.join(model.loops)}")
        report.changed.append("equalities are soft in MuJoCo (solref, solimp); here they hold exactly")
    return ImportedMJCF(draft.mechanism(), report, tuple(model.loops), tuple(model.joints))


def _flags(model: CompiledModel) -> None:
    """Name in the report what flags of the model switch off."""
    m = model.m
    off = {
        "ACTUATION": m.nu and "all actuators (flag actuation)",
        "EQUALITY": m.neq and "all equalities (flag equality)",
        "CONSTRAINT": "all equalities, ranges and dry friction (flag constraint)",
        "LIMIT": np.any(m.jnt_limited) and "ranges of joints (flag limit)",
        "FRICTIONLOSS": np.any(m.dof_frictionloss) and "dry friction (flag frictionloss)",
        "SPRING": np.any(m.jnt_stiffness) and "springs (flag spring)",
        "DAMPER": np.any(m.dof_damping) and "dampers (flag damper)",
    }
    said = [str(what) for flag, what in off.items() if what and model.disabled(flag)]
    model.report.left_out += [f"{what}, which the model switches off" for what in said]


def _rest(model: CompiledModel) -> None:
    m, report = model.m, model.report
    report.leave_out("shapes, for contact and appearance (their masses are in the bodies)", int(m.ngeom))
    limited = [name for name, j in model.draft.data["joints"].items() if "limits" in j]
    if limited:
        report.changed.append(
            "ranges of joints are soft in MuJoCo (solreflimit, solimplimit, margin); here they are rigid stops without "
            f"rebound: {', '.join(limited)}"
        )
    if m.opt.density or m.opt.viscosity:
        report.left_out.append("forces of the surrounding fluid (density, viscosity, wind)")
    if m.nplugin:
        report.leave_out("plugins", int(m.nplugin))
    if m.nflex:
        report.leave_out("flexible bodies", int(m.nflex))


def _check_numbers(model: Any, shown: str) -> None:
    """Refuse numbers that no machine has: MuJoCo reads 1e308 and makes NaN or zero of it."""
    problems = []
    for name in (n for n in dir(model) if n.startswith(READ_ARRAYS)):
        values = getattr(model, name)
        if not isinstance(values, np.ndarray) or values.dtype != np.float64:
            continue
        bad = ~(np.abs(values) <= LARGEST)
        if name == "jnt_axis":
            bad |= np.abs(np.linalg.norm(np.where(bad, 0.0, values), axis=1, keepdims=True) - 1.0) > UNIT_LENGTH
        rows = np.flatnonzero(bad.reshape(len(values), -1).any(axis=1)) if values.size else ()
        for k in rows[:3]:
            message = f"entry {k} of '{name}' is {values[k]}, which no machine has"
            problems.append(Problem("MJCF", message, "Check exponents in the file.", shown))
    if problems:
        raise ModelError(problems)


def _refused(said: str, shown: str) -> Problem:
    """Message of MuJoCo in one line, with its line number if it has one."""
    line = re.search(r"line (\d+)", said)
    message = " ".join(re.sub(r"^XML Error:|^Error:", "", said).split())
    return Problem("MJCF", f"MuJoCo refuses the model: {message}", "Correct it.", shown, int(line[1]) if line else None)
