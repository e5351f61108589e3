"""Write docs/reference/elements.md: every element of a model file, read from the classes that define it.

python docs/element_reference.py

Keys, defaults, meanings, coordinates and rows come from the classes and their docstrings, functions from their tables.
Units and equations are listed here; a number without a unit is an error. `tests/docs/test_element_reference.py`
compares the page with what this script writes.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import loopdyn as ld
from loopdyn.constraints.dispatch import TYPES as CONSTRAINTS
from loopdyn.contacts.dispatch import TYPES as CONTACTS
from loopdyn.forces.dispatch import TYPES as FORCES
from loopdyn.joints.base import Frame, Joint, Rotation
from loopdyn.joints.dispatch import JOINT_TYPES
from loopdyn.model.inertia import Box, Cylinder, Mesh, PlanarInertia, Point, Principal, Rod, Sphere
from loopdyn.model.mechanism import BaseMotion
from loopdyn.quantities.expressions import FUNCTIONS
from loopdyn.quantities.expressions.functions import CONSTANTS
from loopdyn.quantities.expressions.terms import TERMS

PAGE = Path(__file__).parent / "reference" / "elements.md"

FORMS = {
    "AnyShape": "profile", "Scalar": "number", "Law": "law", "Place": "point", "Vec2": "two numbers",
    "Vec3": "three numbers",
    "Vec4": "four numbers", "RotationField": "rotation", "Rotation": "rotation", "Frame": "frame", "Rebound": "rebound",
    "MatrixField": "3 × 3 numbers or a mapping of `xx` ... `yz`",
    "str": "text", "bool": "true or false", "float": "number",
}  # fmt: skip

# Unit of the numbers of a key, by "element.key" or for all elements by the key; "-" has none.
UNITS = {
    "at": "length", "point": "length", "point1": "length", "point2": "length", "points": "length", "through": "length",
    "centre": "length", "radius": "length", "length": "length", "x": "length", "y": "length", "z": "length",
    "position": "length", "axis": "direction", "axis1": "direction", "axis2": "direction", "normal": "direction",
    "direction": "direction", "limits": "angle or length of the coordinate",
    "armature": "mass·length² for an angle, mass for a slide", "pitch": "length/angle", "planar.x": "direction",
    "rebound": "-", "quaternion": "-", "angle": "angle", "rpy": "angle", "u": "-", "formula": "by its terms",
    "coupler.terms": "unit of the row / unit of the coordinate", "offset": "unit of the row",
    "motion": "angle or length of the coordinate", "spring_damper.stiffness": "force/length",
    "spring_damper.damping": "force·s/length", "actuator.force": "force", "bushing.stiffness": "force/length",
    "bushing.damping": "force·s/length", "angular_stiffness": "torque/angle", "angular_damping": "torque·s/angle",
    "joint_spring.stiffness": "torque/angle or force/length", "stop.stiffness": "torque/angle or force/length",
    "stop.damping": "torque·s/angle or force·s/length",
    "joint_spring.damping": "torque·s/angle or force·s/length",
    "rest": "angle or length of the coordinate", "viscous": "torque·s/angle or force·s/length",
    "coulomb": "torque or force", "transition": "angle/s or length/s", "torque": "torque", "motor.force": "force",
    "applied.force": "force", "joint_tendon.terms": "length/angle, or none for a slide",
    "joint_tendon.force": "force, or torque over angles alone", "mass": "mass", "com": "length",
    "start": "length", "end": "length", "size": "length", "inner_radius": "length", "izz": "mass·length²",
    "moments": "mass·length²", "density": "mass/length³",
    "inertia": "mass·length²",
    "lower": "unit of what is bounded", "upper": "unit of what is bounded", "restitution": "-",
    "backlash.terms": "unit of the play / unit of the coordinate", "play": "angle or length, as the terms give",
    "backlash.offset": "unit of the play", "outward": "direction",
}  # fmt: skip

# Meaning of keys that need no words in the docstring.
MEANINGS = {
    "rolling.radius": "Radius of the sphere or disc.", "mass": "Mass.", "com": "Centre of mass.",
    "start": "One end.", "end": "The other end.", 
    "rod.radius": "Radius; 0 is a thin rod without inertia about its line.",
    "size": "Lengths of the edges.", "at": "Centre of the shape.", "point.at": "Place of the point mass.",
    "mesh.at": "Origin of the axes of the file.", "rotation": "Orientation of the axes; by default unturned.",
    "radius": "Radius.", "length": "Length.", "axis": "Direction of the axis.", "inner_radius": "Radius of the hole.",
    "izz": "Moment of inertia about the normal through the centre of mass.", "normal": "Normal of the plane.",
    "moments": "Principal moments of inertia about the centre of mass.", "file": "Path of the STL file.",
    "density": "Mass per volume.",
}  # fmt: skip

# What an element does, as an equation with its sign; p and P are points of `body` and `on` at the instant.
EQUATIONS = {
    "distance": r"$\lvert p_2 - p_1 \rvert - \ell(t) = 0$",
    "point_on_line": r"$e_1 \cdot (p - P) = 0$, $e_2 \cdot (p - P) = 0$ with two normals of the line, fixed in `on`",
    "point_on_plane": r"$n \cdot (p - P) = 0$ with the normal fixed in `on`",
    "point_on_curve": r"$n_1 \cdot (p - c(u)) = 0$, $n_2 \cdot (p - c(u)) = 0$ at the point $c(u)$ nearest to $p$",
    "point_motion": r"$p - (x(t), y(t), z(t)) = 0$ in the axes of `on`, for the coordinates that are given",
    "slot": r"pin axis keeps its direction (2 rows); $p$ stays on the line of the slot (2 rows)",
    "rolling": r"distance of the centre or rim from the plane (1 row); speed of the point of contact $= 0$ (2 rows)",
    "coupler": r"$\sum_k c_k q_k - \text{offset} = 0$",
    "relation": r"$f(q, t) = 0$",
    "velocity_relation": r"$f(v, q, t) = 0$",
    "higher_pair": r"gap of the two profiles $= 0$; the multiplier `fn` pushes body 2 away, along the common normal",
    "stop": r"$x - \text{lower} \ge 0$ and $\text{upper} - x \ge 0$; force $\ge 0$, and zero while the gap is open; "
    r"of a compliant stop at the depth $d > 0$: force $\max(0, k d + c \dot d)$",
    "backlash": r"$\lvert \sum_k c_k q_k - \text{offset} \rvert \le \text{play}/2$",
    "contact": r"gap of the two profiles $\ge 0$, force $\ge 0$, gap times force $= 0$",
    "sphere_on_plane": r"distance of the centre from the plane $-$ radius $\ge 0$",
    "driver": r"$q - \text{motion}(t) = 0$; the multiplier is the load of the drive, positive along the coordinate",
    "spring_damper": r"pull along the line $= k (\ell - \ell_0) + c \dot\ell$; positive pulls the points together",
    "actuator": r"push along the line $= F(t, \ell, \dot\ell)$; positive pushes the points apart",
    "bushing": r"load on body 2 $= -k d - c \dot d$, and $-k_\theta \theta - c_\theta \dot\theta$ about the axes",
    "joint_spring": r"load on the coordinate $= -k (q - q_0) - c \dot q$",
    "joint_friction": r"load on the coordinate $= -c \dot q - F_c \tanh(\dot q / v_t)$",
    "joint_tendon": r"$\ell = \sum_k c_k q_k$; load on coordinate $k$ is $c_k F(t, \ell, \dot\ell)$",
    "motor": r"load on the coordinate $= \tau(t, q, \dot q)$; positive along the coordinate",
    "applied": r"force at the point and torque on the body, in world or body axes",
}  # fmt: skip

# Variables of `run.data`: dimensions, unit, meaning.
RUN = {
    "q": ("time, coordinate", "`coordinate_units`", "coordinates"),
    "v": ("time, speed", "`speed_units`", "speeds"),
    "a": ("time, speed", "`acceleration_units`", "accelerations"),
    "wrench": ("time, joint, component", "`component_units`",
               "reaction on the child at the origin of M, in axes of F: `mx my mz fx fy fz`"),
    "unique": ("joint, component", "-", "true if the component is determined, false if statically indeterminate"),
    "constraint_load": ("time, constraint", "`constraint_units`", "loads of constraints and drivers, by row"),
    "gap": ("time, contact", "`gap_units`", "smallest gap of each contact, if there are any"),
    "contact_force": ("time, contact", "`contact_force_units`", "sum of the forces of its sides"),
    "load": ("time, force", "`force_units`", "load of each force element: torque, force, or its size"),
    "power": ("time, source", "W", "power of each force element; user forces together, drivers and bases together"),
    "work": ("time, source", "J", "work since the start, by the same sources"),
    "energy_kinetic": ("time", "J", "kinetic energy"),
    "energy_potential": ("time", "J", "potential energy of gravity and springs"),
    "energy_balance": ("time", "J", "energy minus initial energy minus work since then: zero up to errors"),
    "momentum": ("time, xyz", "kg m/s", "momentum, world axes"),
    "angular_momentum": ("time, xyz", "kg m²/s", "angular momentum about the world origin"),
    "residual_position": ("time, row", "`row_units`", "constraint equations; zero if satisfied"),
    "residual_velocity": ("time, row", "`row_speed_units`", "the same at velocity level"),
    "residual_acceleration": ("time, row", "`row_acceleration_units`", "the same at acceleration level"),
    "steps": ("time", "-", "number of accepted steps up to this time"),
    "unbounded": ("time", "-", "true inside a singular passage, where no forces are given"),
    "measures": ("time, measure", "`measure_units`", "measures; only if the model has any"),
    "partition": ("time, speed", "-", "independent speeds; only with `partition`"),
    "criterion": ("time, speed", "1", "projective criterion of each speed; only with `partition`"),
}  # fmt: skip


def meanings(cls: type) -> dict[str, str]:
    """Meaning of each key by the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for base in cls.__mro__:
        section = (inspect.cleandoc(base.__doc__ or "") + "\n\n").partition("Parameters\n----------\n")[2]
        section = re.split(r"\n(?:\w[\w ]*)\n-{3,}\n", section)[0]
        for names, text in re.findall(
            r"^(\*{0,2}\w[\w, ]*) ?(?::[^\n]*)?\n((?:    [^\n]*\n|\n(?=    ))*)", section, re.M
        ):
            for name in names.split(","):
                found.setdefault(name.strip(), re.sub(r"\s+", " ", plain(text)).strip())
    return found


def plain(text: str) -> str:
    """Docstring markup as Markdown: roles become code, double quotes single ones."""
    text = re.sub(r":\w+:`([^<`]*?)\s*<[^>`]*>`", r"`\1`", text)
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`")


def annotation(cls: type, key: str) -> str:
    """Annotation of a field as it is written, from the source: some modules evaluate their annotations."""
    owner = next(b for b in cls.__mro__ if key in getattr(b, "__annotations__", {}))
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0].body
    found = next(x.annotation for x in body if isinstance(x, ast.AnnAssign) and x.target.id == key)
    return str(found.value) if isinstance(found, ast.Constant) else ast.unparse(found)  # some are in quotes


def form(cls: type, key: str) -> str:
    """Kind of value of a key in words."""
    text = re.sub(r"Annotated\[(\w+),.*\]", r"\1", annotation(cls, key)).replace(" | None", "")
    text = re.sub(r"Literal\[([^\]]*)\]", lambda m: re.sub("['\"]", "`", m[1]), text)
    text = re.sub(r"dict\[str, (\w+)\]", r"mapping of \1", text)
    text = re.sub(r"tuple\[Law, Law, Law\]", "three laws", text)
    text = re.sub(r"tuple\[(\w+), \.\.\.\]", r"list of \1", text)
    for name, words in FORMS.items():
        text = re.sub(rf"\b{name}\b", words, text)
    text = re.sub(r"\bmapping of (number|text|frame)\b", r"mapping of \1s", text)
    return text.replace(" | ", " or ").replace("list of point", "list of points")


def unit(element: str, cls: type, key: str) -> str:
    """Unit of the numbers of a key."""
    written = annotation(cls, key)
    if not re.search(r"Scalar|Law|Place|Vec|float", written):
        return ""
    if re.search(r"dict\[str, str\]", written):
        return ""
    return UNITS.get(f"{element}.{key}") or UNITS[key]


def shown(value: Any) -> str:
    """Default of a key as in a model file."""
    if value is PydanticUndefined:
        return "required"
    if value is None or value == {} or value == ():
        return ""
    if isinstance(value, tuple):
        return "`[" + ", ".join(f"{v:g}" for v in value) + "]`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{str(value).lower()}`"


def keys(element: str, cls: type[BaseModel], left_out: Iterable[str] = ("type", "name")) -> list[str]:
    """Table of the keys of an element."""
    explained = meanings(cls)
    lines = ["| key | value | unit | default | meaning |", "|---|---|---|---|---|"]
    for key, field in cls.model_fields.items():
        if key not in left_out:
            default = shown(field.default) if field.default_factory is None else ""
            cells = (
                f"`{key}`",
                form(cls, key),
                unit(element, cls, key),
                default,
                explained.get(key) or MEANINGS.get(f"{element}.{key}") or MEANINGS[key],
            )
            lines.append("| " + " | ".join(cells).replace("|  |", "| |") + " |")
    return [*lines, ""] if len(lines) > 2 else []


def summary(cls: type) -> str:
    """Description of a class, without its sections."""
    return plain(re.split(r"\n(?:Parameters|Examples|Notes)\n-+", inspect.cleandoc(cls.__doc__ or ""))[0]).strip()


def labels(suffixes: Iterable[str]) -> str:
    """Labels of coordinates of a joint A."""
    return ", ".join(f"`A.{s}`" if s else "`A`" for s in suffixes) or "none"


def joint(cls: type[Joint]) -> list[str]:
    """Section of a joint type."""
    name = str(cls.model_fields["type"].default)
    picture = [f"![{name} joint: frames F and M, axes and coordinates](joints/{name}.svg)", ""]
    facts = [
        "| | |", "|---|---|",
        f"| coordinates of a joint `A` | {labels(cls.coordinates)} |",
        f"| speeds | {labels(cls.speeds)} |",
        f"| rows when cut, axes of F | {', '.join(f'`{r}`' for r in cls.rows_when_cut) or 'none'} |",
        "",
    ]  # fmt: skip
    return [f"### {name}", "", summary(cls), "", *picture, *facts, *keys(name, cls, ("type", *Joint.model_fields))]


def element(cls: type[BaseModel], name: str = "") -> list[str]:
    """Section of a constraint or force."""
    name = name or str(cls.model_fields["type"].default)
    rows = getattr(cls, "rows", ())
    rows = [f"Rows: {', '.join(f'`{r}`' for r in rows)}.", ""] if isinstance(rows, tuple) and rows else []
    picture = (
        f"![{name}: the first body in grey, the second in blue, the positive sense in orange](elements/{name}.svg)"
    )
    equation = f"**Equation:** {EQUATIONS[name]}."
    return [f"### {name}", "", summary(cls), "", picture, "", equation, "", *rows, *keys(name, cls)]


def functions() -> list[str]:
    """Tables of the functions of formulas."""
    lines = ["| function | value |", "|---|---|"]
    lines += [f"| `{n}({', '.join(f.arguments)})` | {f.meaning} |" for n, f in FUNCTIONS.items()]
    lines += ["", f"Constants: {', '.join(f'`{c}`' for c in CONSTANTS)}. Operators: `+ - * / **`, comparisons in"]
    lines += [
        "`a if condition else b`.",
        "",
        "In measures, of named points `P`, `Q`, `R`:",
        "",
        "| function | value |",
        "|---|---|",
    ]
    return [*lines, *(f"| `{f.usage}` | {f.meaning} |" for f in TERMS.values()), ""]


INTRODUCTION = """# Elements of a model

Every joint, constraint, driver, force and measure of a [model file](../model_files.md), with all keys. The page is
written by `docs/element_reference.py` from the classes themselves. Functions in Python (user forces and constraints)
are not part of a file and not listed. In Python the keys are the arguments of the
[classes of the same names](models.md).

*number*: a number or a formula of parameters in quotes. *law*: a number, a formula, a table or a
[profile](profiles.md); its variables are in the text. *point*: three numbers, world coordinates at the reference pose,
or the name of a point. *direction*: three numbers whose length does not matter. Units are those that the model declares
([notation](../notation.md#units)); "length" is m unless it says otherwise, s is always the second. A key that has no
default and is not required may be left out.
"""

RUN_TEXT = """`run.data` is an xarray dataset. Where the unit is a name, it is that of a coordinate of the dataset, with
one unit per label; the others have SI units whatever the model declares."""


def bodies() -> list[str]:
    """Sections of bodies: their own keys, and the shapes that give mass."""
    parts = tuple(key for key, field in ld.Inertia.model_fields.items() if field.alias)
    lines = ["## Bodies", "", summary(ld.Body), "", *keys("body", ld.Body, parts)]
    for cls in (Rod, Box, Cylinder, Sphere, Point, PlanarInertia, Principal, Mesh):
        lines += [f"### {cls.label} of a body", "", summary(cls), "", *keys(cls.label, cls)]
    lines += ["### base", "", summary(BaseMotion), ""]
    lines += ["| key | value | unit | default |", "|---|---|---|---|"]
    for key in BaseMotion.model_fields:
        lines.append(f"| `{key}` | law | {'angle' if key.startswith('r') else 'length'} | `0` |")
    return [*lines, ""]


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION, *bodies(), "## Joints", "", "### Keys of all joints", "", *keys("joint", Joint, ("type",))]
    lines += ["A frame:", "", *keys("frame", Frame), "A rotation, one of:", "", *keys("rotation", Rotation)]
    for cls in sorted(JOINT_TYPES, key=lambda c: (len(c.speeds) == 0, len(c.speeds), c.kind)):
        lines += joint(cls)
    lines += ["## Constraints", ""]
    for cls in CONSTRAINTS:
        lines += element(cls)
    lines += ["## Drivers", "", *element(ld.constraints.Driver, "driver"), "## Contacts", ""]
    lines += ["Constraints that hold while they press: see [contacts](../contact.md).", ""]
    for cls in CONTACTS:
        lines += element(cls)
    lines += ["## Forces", ""]
    for cls in FORCES:
        lines += element(cls)
    lines += [
        "## Measures",
        "",
        summary(ld.results.Measure),
        "",
        *keys("measure", ld.results.Measure),
        "## Functions of formulas",
        "",
    ]
    lines += [*functions(), "## Variables of a run", ""]
    lines += [RUN_TEXT, ""]
    lines += ["| variable | dimensions | unit | meaning |", "|---|---|---|---|"]
    lines += [f"| `{n}` | {dims} | {u} | {text} |" for n, (dims, u, text) in RUN.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
