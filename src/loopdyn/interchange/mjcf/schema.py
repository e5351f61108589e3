"""MuJoCo's elements and attributes, and what reading a file does with each of them.

Every attribute of MJCF has a fate here; one that has none is reported like those that are left out. So no attribute
gets lost without a word. The list is that of MuJoCo 4.0; a test compares it with the installed version.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopdyn.interchange.markup import Element
from loopdyn.interchange.report import Report, listed

# What becomes of an attribute.
CARRIED = "carried"  # MuJoCo's compiler makes poses, inertias, names, coordinates or parameters of it, which are read
JUDGED = "judged"  # the reader carries its compiled value over, or names in the report what it cannot carry over
LEFT = "left out"  # always named in the report
LOOKS, CONTACT, SOLVER, SOFT, SENSORS, DATA, FLEXIBLE = (
    "looks",
    "contact",
    "settings of MuJoCo's solver",
    "softness of equalities, ranges and dry friction",
    "sensors",
    "data without effect on the motion",
    "flexible bodies",
)  # in groups, one line each

# Elements that are left out with everything in them: by section and tag, or by tag anywhere.
WHOLE = {
    "visual": LOOKS, "statistic": LOOKS, "texture": LOOKS, "material": LOOKS, "light": LOOKS, "camera": LOOKS,
    "skin": LOOKS, "size": SOLVER, "custom": DATA, "sensor": SENSORS, "contact": CONTACT, "hfield": CONTACT,
    "default/pair": CONTACT, "deformable": FLEXIBLE, "flexcomp": FLEXIBLE, "equality/flex": FLEXIBLE,
    "equality/flexvert": FLEXIBLE, "equality/flexstrain": FLEXIBLE,
}  # fmt: skip

_POSE = "pos quat axisangle euler xyaxes zaxis"
_LIMITED = "actuatorfrclimited actuatorfrcrange armature damping frictionloss limited range springyield stiffness"
_SOFT = "margin solimpfriction solimplimit solreffriction solreflimit"
_TENDON = {JUDGED: f"{_LIMITED} springlength", CARRIED: "class name", LOOKS: "material rgba width",
           DATA: "group user", SOFT: _SOFT}  # fmt: skip
_ACTUATOR = {
    CARRIED: "class name area bias diameter dampratio gainprm biasprm inheritrange kp kv",
    JUDGED: "armature biastype body cranksite ctrllimited ctrlrange damping dyntype forcelimited forcerange gain "
    "gaintype gear group joint jointinparent refsite site slidersite tendon timeconst",
    LEFT: "actdim actearly actlimited actrange cogging controller cranklength delay dynprm ffrange force fpmax fvmax "
    "imax inductance input instance interp ki lengthrange lmax lmin lugre motorconst nominal nsample plugin posrange "
    "range resistance saturation scale slewmax tausmooth thermal velrange vmax",
    DATA: "user",
}
_PLUGIN = {JUDGED: "instance plugin name key value"}

# By element: treatment and attributes. Elements of actuators share one entry; defaults have those of their elements.
ATTRIBUTES: dict[str, dict[str, str]] = {
    "mujoco": {CARRIED: "model"},
    "include": {CARRIED: "file prefix"},
    "compiler": {
        CARRIED: "alignfree angle assetdir autolimits balanceinertia boundinertia boundmass conflict convexhull "
        "coordinate discardvisual eulerseq exactmeshinertia fitaabb fusestatic inertiafromgeom inertiagrouprange "
        "meshdir settotalmass strippath texturedir",
        DATA: "passthrough savecanonical savecompiled saveinertial usethread",
    },
    "lengthrange": {LEFT: "accel interval inttotal maxforce mode timeconst timestep tolrange useexisting uselimit"},
    "option": {
        CARRIED: "gravity",
        JUDGED: "actuatorgroupdisable density viscosity wind",
        CONTACT: "cone impratio o_friction o_margin o_solimp o_solref",
        SENSORS: "magnetic",
        SOLVER: "apirate ccd_iterations ccd_tolerance integrator iterations jacobian ls_iterations ls_tolerance "
        "mpr_iterations mpr_tolerance noslip_iterations noslip_tolerance sdf_initpoints sdf_iterations sleep_tolerance "
        "solver timestep tolerance",
    },
    "flag": {
        JUDGED: "actuation clampctrl constraint damper equality frictionloss gravity limit passive spring",
        CONTACT: "contact filterparent midphase multiccd nativeccd override speculative",
        SENSORS: "sensor sensornoise",
        SOLVER: "autoreset diagexact energy eulerdamp fwdinv invdiscrete ipc island refsafe sleep warmstart",
    },
    "default": {CARRIED: "class"},
    "extension": {},
    "plugin": _PLUGIN,
    "instance": _PLUGIN,
    "config": _PLUGIN,
    "asset": {},
    "mesh": {
        CARRIED: "builtin class content_type face file inertia name params refpos refquat scale vertex",
        CONTACT: "maxhullvert",
        LOOKS: "material normal smoothnormal texcoord",
    },
    "model": {CARRIED: "content_type file name"},
    "worldbody": {CARRIED: "name"},
    "body": {CARRIED: f"{_POSE} childclass name fuse", JUDGED: "gravcomp mocap", SOLVER: "simple sleep", DATA: "user"},
    "frame": {CARRIED: f"{_POSE} name childclass"},
    "replicate": {CARRIED: "count sep offset euler"},
    "composite": {CARRIED: "prefix type count offset curve size initial quat"},
    "composite/joint": {
        CARRIED: "kind type axis",
        JUDGED: "stiffness damping armature limited range frictionloss",
        SOFT: f"{_SOFT} solreffix solimpfix",
        DATA: "group",
    },
    "composite/geom": {
        CARRIED: "type size mass density",
        CONTACT: "contype conaffinity condim priority friction solmix solref solimp margin gap",
        LOOKS: "rgba material group",
    },
    "composite/site": {CARRIED: "size", LOOKS: "group material rgba"},
    "inertial": {CARRIED: f"{_POSE} diaginertia fullinertia mass"},
    "joint": {
        CARRIED: "axis class name pos ref springdamper springref type",
        JUDGED: f"{_LIMITED} actuatorgravcomp",
        SOFT: _SOFT,
        DATA: "group user",
    },
    "freejoint": {CARRIED: "align name", DATA: "group"},
    "geom": {
        CARRIED: f"{_POSE} class density fitscale fromto group mass mesh name shellinertia size type",
        CONTACT: "adhesion conaffinity condim contype friction gap hfield margin priority solimp solmix solref "
        "surfacevel",
        LOOKS: "castshadow material rgba",
        LEFT: "fluidcoef fluidshape",
        DATA: "user",
    },
    "attach": {CARRIED: "body frame model prefix"},
    "site": {CARRIED: f"{_POSE} class fromto mesh name", LOOKS: "material rgba size type", DATA: "group user"},
    "tendon": {},
    "default/tendon": _TENDON,
    "spatial": _TENDON,
    "fixed": _TENDON,
    "spatial/site": {CARRIED: "site"},
    "spatial/geom": {JUDGED: "geom sidesite"},
    "spatial/pulley": {JUDGED: "divisor"},
    "fixed/joint": {CARRIED: "coef joint"},
    "equality": {},
    "default/equality": {JUDGED: "active", SOFT: "solimp solref"},
    "connect": {CARRIED: "anchor body1 body2 class name site1 site2", JUDGED: "active", SOFT: "solimp solref"},
    "weld": {CARRIED: "anchor body1 body2 class name relpose site1 site2", JUDGED: "active torquescale",
             SOFT: "solimp solref"},
    "equality/joint": {CARRIED: "class joint1 joint2 name polycoef", JUDGED: "active", SOFT: "solimp solref"},
    "equality/tendon": {CARRIED: "class name tendon1 tendon2", JUDGED: "active polycoef", SOFT: "solimp solref"},
    "actuator": {},
    "keyframe": {},
    "key": {CARRIED: "name", JUDGED: "ctrl qpos qvel", LEFT: "act mpos mquat plastic time"},
}  # fmt: skip
for _kind in (
    "general", "motor", "position", "velocity", "intvelocity", "orientation", "pid", "damper", "cylinder", "muscle",
    "adhesion", "dcmotor", "actuator/plugin",
):  # fmt: skip
    ATTRIBUTES[_kind] = _ACTUATOR

_FATES = {
    (element, attribute): fate
    for element, said in ATTRIBUTES.items()
    for fate, attributes in said.items()
    for attribute in attributes.split()
}


def whole(parent: str, tag: str) -> str | None:
    """Group that an element is left out with, whatever it says; None for elements that are read."""
    return WHOLE.get(f"{parent}/{tag}", WHOLE.get(tag))


def known(parent: str, tag: str) -> str | None:
    """Entry of `ATTRIBUTES` for an element inside another; None for an element that is not known."""
    return next((name for name in (f"{parent}/{tag}", tag) if name in ATTRIBUTES), None)


def fate(parent: str, tag: str, attribute: str) -> str | None:
    """Treatment of an attribute; None if it is unknown."""
    group = whole(parent, tag)
    return group if group is not None else _FATES.get((known(parent, tag) or "", attribute))


def report_unused(root: Element, report: Report) -> None:
    """Name in the report whatever the file says and the reader does not use."""
    groups: dict[str, dict[str, None]] = {}
    left: dict[str, list[int]] = {}
    for parent, element in _walk("", root):
        group = whole(parent, element.tag)
        if group is not None:
            groups.setdefault(group, {})[f"<{element.tag}>"] = None
            continue
        if known(parent, element.tag) is None:
            left.setdefault(f"<{element.tag}>, an element that is not known here", []).append(element.line)
            continue
        for attribute in element.attributes:
            found = fate(parent, element.tag, attribute)
            name = f"{element.tag}.{attribute}"
            if found is None:
                left.setdefault(f"{name}, an attribute that is not known here", []).append(element.line)
            elif found == LEFT:
                left.setdefault(name, []).append(element.line)
            elif found not in (CARRIED, JUDGED):
                groups.setdefault(found, {})[name] = None
    for name, lines in left.items():
        shown = listed([str(n) for n in dict.fromkeys(lines)], most=5)
        report.left_out.append(f"{name} (line {shown})")
    for group, names in groups.items():
        report.left_out.append(f"{group}: {', '.join(names)}")


def _walk(parent: str, element: Element) -> Iterator[tuple[str, Element]]:
    """Elements with the tags that contain them; elements left out as a whole are not entered."""
    yield parent, element
    if whole(parent, element.tag) is None:
        for child in element.children:
            yield from _walk(element.tag, child)
