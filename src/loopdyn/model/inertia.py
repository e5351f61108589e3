"""Mass properties: given directly, from simple shapes, or from a mesh and a density.

Every shape gives a mass, a centre of mass and an inertia matrix about it, in the axes its numbers are
written in: world axes at the reference pose, or body axes if the body says so.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field

from loopdyn.errors import ModelError, Problem
from loopdyn.joints.base import Rotation, RotationField, axis_frame
from loopdyn.quantities.units import Path, Place, Resolver, Scalar, Spec, Units, Vec3

Array = NDArray[np.float64]
MassProperties = tuple[float, Array, Array]  # mass, centre of mass (3), inertia about it (3, 3)

ORIGIN = (0.0, 0.0, 0.0)
DENSE = 25e3  # kg/m^3: osmium has 22.6e3


class Matrix(Spec):
    """Inertia matrix about the centre of mass by its entries; products of inertia default to zero.

    ``xy`` is the matrix entry (-integral of x y dm), as in most CAD reports of the matrix itself.
    """

    label: ClassVar[str] = "inertia"

    xx: Scalar = 0.0
    yy: Scalar = 0.0
    zz: Scalar = 0.0
    xy: Scalar = 0.0
    xz: Scalar = 0.0
    yz: Scalar = 0.0

    def resolve(self, r: Resolver, element: str, path: Path) -> Array:
        """Matrix (3, 3)."""
        keys = ("xx", "yy", "zz", "xy", "xz", "yz")
        xx, yy, zz, xy, xz, yz = (r.scalar(getattr(self, k), "inertia", element, (*path, k)) for k in keys)
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _matrix(value: Any) -> Any:
    """Accept a 3x3 nested list or array for the mapping of entries."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        if len(value) != 3 or any(not isinstance(line, list | tuple) or len(line) != 3 for line in value):
            raise ValueError("expected a 3x3 matrix or a mapping with xx, yy, zz, xy, xz, yz")
        numbers = [abs(x) for line in value for x in line if isinstance(x, int | float)]
        rounding = ROUNDING * max(numbers, default=0.0)  # a computed matrix is symmetric to the last digits only
        for i, j in ((0, 1), (0, 2), (1, 2)):
            a, b = value[i][j], value[j][i]
            if a != b and not (isinstance(a, int | float) and isinstance(b, int | float) and abs(a - b) <= rounding):
                raise ValueError(f"inertia matrix is not symmetric: entries {i + 1}{j + 1} and {j + 1}{i + 1} differ")
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = value
        return {"xx": xx, "yy": yy, "zz": zz, "xy": xy, "xz": xz, "yz": yz}
    return value


MatrixField = Annotated[Matrix, BeforeValidator(_matrix, json_schema_input_type=Matrix | tuple[Vec3, Vec3, Vec3])]


def too_dense(density: float, units: Units) -> str:
    """Warning about a density in kg/m^3 above that of all materials."""
    steel = f"{7850.0 / units.factor('density'):.4g} {units.mass}/{units.length}^3"
    return (
        f"its density is {density:.4g} kg/m^3, more than any material has. Steel has {steel} in the units of the model."
    )


class Solid(Spec):
    """Mass, centre of mass and inertia matrix about it."""

    label: ClassVar[str] = "inertia"

    mass: Scalar
    com: Place = ORIGIN
    inertia: MatrixField = Matrix()

    def resolve(self, r: Resolver, element: str, path: Path) -> MassProperties:
        """As given."""
        m = r.scalar(self.mass, "mass", element, (*path, "mass"))
        c = r.vector(self.com, "length", element, (*path, "com"))
        return m, c, self.inertia.resolve(r, element, (*path, "inertia"))


def _size(r: Resolver, value: float | str, element: str, path: Path) -> float:
    """Length that is not negative."""
    size = r.scalar(value, "length", element, path)
    if size < 0.0:
        name = next(key for key in reversed(path) if isinstance(key, str))
        r.problem(element, f"'{name}' is negative", "Give a positive number.", path)
    return size


class Rod(Spec):
    """Uniform rod; thin unless a radius is given."""

    label: ClassVar[str] = "rod"

    mass: Scalar
    start: Place
    end: Place
    radius: Scalar = 0.0

    def resolve(self, r: Resolver, element: str, path: Path) -> MassProperties:
        """A cylinder between the two points."""
        a = r.vector(self.start, "length", element, (*path, "start"))
        b = r.vector(self.end, "length", element, (*path, "end"))
        radius = _size(r, self.radius, element, (*path, "radius"))
        m = r.scalar(self.mass, "mass", element, (*path, "mass"))
        along = b - a
        length = math.sqrt(float(along @ along))
        if length == 0.0:
            r.problem(element, "rod has length zero", "Give two different points.", path)
            return m, a, np.zeros((3, 3))
        return m, (a + b) / 2, _cylinder(m, radius, length, along / length)


def _cylinder(m: float, radius: float, length: float, axis: Array) -> Array:
    along = m * radius**2 / 2
    across = m * (3 * radius**2 + length**2) / 12
    x, y, z = axis.tolist()
    d = along - across
    return np.array(
        [
            [across + d * (x * x), 0.0 + d * (x * y), 0.0 + d * (x * z)],
            [0.0 + d * (x * y), across + d * (y * y), 0.0 + d * (y * z)],
            [0.0 + d * (x * z), 0.0 + d * (y * z), across + d * (z * z)],
        ]
    )


class Box(Spec):
    """Uniform box with edges `size` along its own axes."""

    label: ClassVar[str] = "box"

    mass: Scalar
    size: Vec3
    at: Place = ORIGIN
    rotation: RotationField = None

    def resolve(self, r: Resolver, element: str, path: Path) -> MassProperties:
        """Centre `at`."""
        m = r.scalar(self.mass, "mass", element, (*path, "mass"))
        x, y, z = (_size(r, edge, element, (*path, "size", k)) for k, edge in enumerate(self.size))
        local = m / 12 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])
        return m, r.vector(self.at, "length", element, (*path, "at")), _turned(local, self.rotation, r, element, path)


class Cylinder(Spec):
    """Uniform cylinder, full or hollow, with its centre at `at`."""

    label: ClassVar[str] = "cylinder"

    mass: Scalar
    radius: Scalar
    length: Scalar
    axis: Vec3
    at: Place = ORIGIN
    inner_radius: Scalar = 0.0

    def resolve(self, r: Resolver, element: str, path: Path) -> MassProperties:
        """Axis through the centre."""
        m = r.scalar(self.mass, "mass", element, (*path, "mass"))
        outer = _size(r, self.radius, element, (*path, "radius"))
        inner = _size(r, self.inner_radius, element, (*path, "inner_radius"))
        if inner > outer:
            r.problem(element, "'inner_radius' is larger than 'radius'", "Exchange them.", (*path, "inner_radius"))
        length = _size(r, self.length, element, (*path, "length"))
        axis = r.direction(self.axis, element, (*path, "axis"))
        c = r.vector(self.at, "length", element, (*path, "at"))
        return m, c, _cylinder(m, math.hypot(outer, inner), length, axis)


class Sphere(Spec):
    """Uniform solid sphere with its centre at `at`."""

    label: ClassVar[str] = "sphere"

    mass: Scalar
    radius: Scalar
    at: Place = ORIGIN

    def resolve(self, r: Resolver, element: str, path: Path) -> MassProperties:
        """2/5 m r^2 about every axis."""
        m = r.scalar(self.mass, "mass", element, (*path, "mass"))
        radius = _size(r, self.radius, element, (*path, "radius"))
        return m, r.vector(self.at, "length", element, (*path, "at")), 0.4 * m * radius**2 * np.eye(3)


class Point(Spec):
    """Point mass."""

    label: ClassVar[str] = "point"

    mass: Scalar
    at: Place = ORIGIN

    def resolve(self, r: Resolver, element: str, path: Path) -> MassProperties:
        """No inertia about itself."""
        m = r.scalar(self.mass, "mass", element, (*path, "mass"))
        return m, r.vector(self.at, "length", element, (*path, "at")), np.zeros((3, 3))


class PlanarInertia(Spec):
    """A flat body in the plane of `normal` (z): its inertia about the normal counts.

    The inertia about axes in the plane is taken as `izz`/2 each, that of a thin disc.
    """

    label: ClassVar[str] = "planar"

    mass: Scalar
    com: Place
    izz: Scalar
    normal: Vec3 = (0.0, 0.0, 1.0)

    def resolve(self, r: Resolver, element: str, path: Path) -> MassProperties:
        """Thin disc of the given polar inertia."""
        m = r.scalar(self.mass, "mass", element, (*path, "mass"))
        c = r.vector(self.com, "length", element, (*path, "com"))
        izz = r.scalar(self.izz, "inertia", element, (*path, "izz"))
        n = r.direction(self.normal, element, (*path, "normal"))
        return m, c, _disc(izz, n.tobytes())


@lru_cache(maxsize=4096)  # models are compiled again with other dimensions
def _disc(izz: float, normal: bytes) -> Array:
    frame = axis_frame(np.frombuffer(normal))
    inertia: Array = frame.T @ np.diag([izz / 2, izz / 2, izz]) @ frame
    inertia.flags.writeable = False
    return inertia


class Principal(Spec):
    """Principal moments of inertia, about axes given by `rotation`."""

    label: ClassVar[str] = "principal"

    mass: Scalar
    com: Place
    moments: Vec3
    rotation: RotationField = None

    def resolve(self, r: Resolver, element: str, path: Path) -> MassProperties:
        """Turned into the axes of the model."""
        m = r.scalar(self.mass, "mass", element, (*path, "mass"))
        c = r.vector(self.com, "length", element, (*path, "com"))
        moments = r.vector(self.moments, "inertia", element, (*path, "moments"))
        return m, c, _turned(np.diag(moments), self.rotation, r, element, path)


def _turned(local: Array, rotation: Rotation | None, r: Resolver, element: str, path: Path) -> Array:
    if rotation is None:
        return local
    Q = rotation.resolve(r, element, (*path, "rotation"))
    return Q @ local @ Q.T


class Mesh(Spec):
    """A closed surface from an STL file, filled with material of uniform density.

    The path of the file is kept absolute, so that it means the same wherever the model is used or saved.
    """

    label: ClassVar[str] = "mesh"

    file: Annotated[str, AfterValidator(os.path.abspath)]
    density: Scalar
    at: Place = ORIGIN
    rotation: RotationField = None

    def resolve(self, r: Resolver, element: str, path: Path) -> MassProperties:
        """Mass properties of the enclosed volume; file coordinates are in the length unit of the model."""
        nothing = (0.0, np.zeros(3), np.zeros((3, 3)))
        density = r.scalar(self.density, "density", element, (*path, "density"))
        if density > DENSE:
            r.notes.append(f"{element}: {too_dense(density, r.units)}")
        try:
            triangles = read_stl(FilePath(self.file)) * r.units.factor("length")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            r.problem(element, f"cannot read mesh {self.file!r}: {reason}", "Check the path.", (*path, "file"))
            return nothing
        gap = open_edges(triangles)
        if gap:
            hint = "Repair the mesh: every edge must belong to two triangles."
            r.problem(element, f"mesh {self.file!r} is not closed ({gap} open edges)", hint, (*path, "file"))
            return nothing
        volume, c, second = volume_integrals(triangles)
        if volume <= 0.0:
            r.problem(element, f"mesh {self.file!r} is inside out", "Reverse its triangles.", (*path, "file"))
            return nothing
        m = density * volume
        covariance = density * second - m * np.outer(c, c)
        local = np.trace(covariance) * np.eye(3) - covariance
        Q = np.eye(3) if self.rotation is None else self.rotation.resolve(r, element, (*path, "rotation"))
        return m, r.vector(self.at, "length", element, (*path, "at")) + Q @ c, Q @ local @ Q.T


def read_stl(path: FilePath) -> Array:
    """Triangles (n, 3, 3) of a binary or text STL file."""
    if path.exists() and not path.is_file():  # a pipe or device may never end
        raise ValueError("not an ordinary file")
    data = path.read_bytes()
    if len(data) >= 84:
        (count,) = struct.unpack_from("<I", data, 80)
        if len(data) == 84 + 50 * count:
            raw = np.frombuffer(data, np.uint8, 50 * count, 84).reshape(count, 50)[:, 12:48]
            return np.ascontiguousarray(raw).view("<f4").reshape(count, 3, 3).astype(float)
    text = data.decode("ascii", errors="replace")
    if not text.lstrip().startswith("solid"):
        raise ValueError("not an STL file")
    try:
        words = [line.split() for line in text.splitlines()]
        return np.array([w[1:4] for w in words if w[:1] == ["vertex"]], float).reshape(-1, 3, 3)
    except ValueError:
        raise ValueError("not a valid STL file: cannot read its vertices") from None


def open_edges(triangles: Array) -> int:
    """Number of directed edges that have no partner in the opposite direction."""
    _, index = np.unique(triangles.reshape(-1, 3), axis=0, return_inverse=True)
    t = index.reshape(-1, 3)
    edges = np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]])
    forward, counts = np.unique(edges, axis=0, return_counts=True)
    seen = {tuple(e): int(c) for e, c in zip(forward.tolist(), counts, strict=True)}
    return sum(abs(c - seen.get((b, a), 0)) for (a, b), c in seen.items())


def volume_integrals(triangles: Array) -> tuple[float, Array, Array]:
    """Volume, centroid, and integral of x x^T over the volume, by signed tetrahedra from the origin."""
    six = np.einsum("ni,ni->n", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2]))  # 6 x volume of each
    volume = float(six.sum() / 6)
    total = triangles.sum(axis=1)
    first = np.einsum("n,ni->i", six, total) / 24
    second = np.einsum("n,nki,nkj->ij", six, triangles, triangles) + np.einsum("n,ni,nj->ij", six, total, total)
    return volume, first / volume if volume != 0.0 else first, second / 120


# --------------------------------------------------------------------------------------- sum of the parts


def _several(value: Any) -> Any:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _parts(kind: Any, alias: str) -> Any:
    several = BeforeValidator(_several, json_schema_input_type=kind | tuple[kind, ...])
    return Annotated[tuple[kind, ...], several, Field(alias=alias)]


class Inertia(Spec):
    """Mass properties of a body: the sum of its parts.

    ``Inertia(mass, com, matrix)`` gives them directly: centre of mass and inertia matrix about it, in world
    axes at the reference pose. The class methods make them from shapes; ``+`` joins several.

    Parameters
    ----------
    mass : number, optional
        Mass.
    com : (3,)
        Centre of mass, in units of length.
    inertia : (3, 3) or mapping of ``xx``, ``yy``, ``zz``, ``xy``, ``xz``, ``yz``, optional
        About the centre of mass, in units of mass times length squared.
    solid, rod, box, cylinder, sphere, point, planar, principal, mesh : part or list of parts, optional
        Instead of the above, or added to it: shapes with mass or density.

    Examples
    --------
    >>> Inertia.rod(mass=0.3, start=(0, 0, 0), end=(1, 0, 0)) + Inertia.point(mass=5.0, at=(1, 0, 0))
    Inertia(com=(0.0, 0.0, 0.0), rods=(Rod(mass=0.3, start=(0.0, 0.0, 0.0), end=(1.0, 0.0, 0.0), radius=0.0),), \
points=(Point(mass=5.0, at=(1.0, 0.0, 0.0)),))
    """

    label: ClassVar[str] = "inertia"

    mass: Scalar | None = None
    com: Place = ORIGIN
    inertia: MatrixField | None = None
    solids: _parts(Solid, "solid") = ()  # type: ignore[valid-type]
    rods: _parts(Rod, "rod") = ()  # type: ignore[valid-type]
    boxes: _parts(Box, "box") = ()  # type: ignore[valid-type]
    cylinders: _parts(Cylinder, "cylinder") = ()  # type: ignore[valid-type]
    spheres: _parts(Sphere, "sphere") = ()  # type: ignore[valid-type]
    points: _parts(Point, "point") = ()  # type: ignore[valid-type]
    planars: _parts(PlanarInertia, "planar") = ()  # type: ignore[valid-type]
    principals: _parts(Principal, "principal") = ()  # type: ignore[valid-type]
    meshes: _parts(Mesh, "mesh") = ()  # type: ignore[valid-type]

    def __init__(self, mass: Any = None, com: Any = ORIGIN, matrix: Any = None, **parts: Any) -> None:
        if matrix is not None:
            parts["inertia"] = matrix
        if mass is None and com is not ORIGIN:
            raise ModelError([Problem("inertia", "'com' is given without a mass", "Give the mass, too.")])
        super().__init__(mass=mass, com=com, **parts) if mass is not None else super().__init__(**parts)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def rod(cls, mass: Any, start: Any, end: Any, radius: Any = 0.0) -> Inertia:
        """Uniform rod from `start` to `end`; thin unless a radius is given."""
        return cls(rod=Rod(mass=mass, start=start, end=end, radius=radius))

    @classmethod
    def box(cls, mass: Any, size: Any, at: Any = ORIGIN, rotation: Any = None) -> Inertia:
        """Uniform box with its centre at `at`."""
        return cls(box=Box(mass=mass, size=size, at=at, rotation=rotation))

    @classmethod
    def cylinder(
        cls, mass: Any, radius: Any, length: Any, axis: Any, at: Any = ORIGIN, inner_radius: Any = 0.0
    ) -> Inertia:
        """Uniform cylinder with its centre at `at`."""
        return cls(
            cylinder=Cylinder(mass=mass, radius=radius, length=length, axis=axis, at=at, inner_radius=inner_radius)
        )

    @classmethod
    def sphere(cls, mass: Any, radius: Any, at: Any = ORIGIN) -> Inertia:
        """Uniform solid sphere with its centre at `at`."""
        return cls(sphere=Sphere(mass=mass, radius=radius, at=at))

    @classmethod
    def point(cls, mass: Any, at: Any = ORIGIN) -> Inertia:
        """Point mass."""
        return cls(point=Point(mass=mass, at=at))

    @classmethod
    def planar(cls, mass: Any, com: Any, izz: Any, normal: Any = (0.0, 0.0, 1.0)) -> Inertia:
        """A flat body: mass, centre, inertia about the normal; `izz`/2 about each axis in the plane."""
        return cls(planar=PlanarInertia(mass=mass, com=com, izz=izz, normal=normal))

    @classmethod
    def from_principal(cls, mass: Any, com: Any, moments: Any, rotation: Any = None) -> Inertia:
        """Principal moments about axes turned by `rotation`."""
        return cls(principal=Principal(mass=mass, com=com, moments=moments, rotation=rotation))

    @classmethod
    def from_mesh(cls, file: Any, density: Any, at: Any = ORIGIN, rotation: Any = None) -> Inertia:
        """Closed surface of an STL file, filled with uniform density; file coordinates in the model's length unit."""
        return cls(mesh=Mesh(file=str(file), density=density, at=at, rotation=rotation))

    @classmethod
    def massless(cls) -> Inertia:
        """No mass at all."""
        return cls(mass=0.0)

    def __add__(self, other: Inertia) -> Inertia:
        shapes: dict[str, list[Any]] = {}
        for key, part in (*self.parts(), *other.parts()):
            shapes.setdefault(key or "solid", []).append(part)
        return Inertia(**shapes)

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Key and part, for all parts; the key of mass, com and inertia given directly is empty."""
        if self.mass is not None:
            # built from fields that were checked already
            yield "", Solid.model_construct(mass=self.mass, com=self.com, inertia=self.inertia or Matrix())
        for name, alias in _SHAPES:
            for part in getattr(self, name):
                yield alias, part

    def resolve(self, r: Resolver, element: str, path: Path) -> MassProperties:
        """Mass, centre of mass, inertia about it; checked to be that of a possible body."""
        if self.mass is None and self.inertia is not None:
            r.problem(element, "'mass' is missing", "Add 'mass'.", path)
        found = []
        for key, part in self.parts():
            where = (*path, key) if key else path
            m, c, inertia = part.resolve(r, element, where)
            problem = impossible(m, inertia)
            if problem:
                r.problem(element, *problem, path=where)
            found.append((m, c, inertia))
        if not found:
            r.problem(element, "has no mass properties", "Give a mass, a shape such as 'rod', or 'mass: 0'.", path)
            return 0.0, np.zeros(3), np.zeros((3, 3))
        return found[0] if len(found) == 1 else _sum(found)


_SHAPES = tuple((name, f.alias) for name, f in Inertia.model_fields.items() if f.alias)


def _sum(parts: list[MassProperties]) -> MassProperties:
    mass = sum(m for m, _, _ in parts)
    weight = mass if mass > 0.0 else 1.0
    com = np.sum([m * c for m, c, _ in parts], axis=0) / weight
    return mass, com, np.sum([inertia + _steiner(m, c - com) for m, c, inertia in parts], axis=0)


def _steiner(m: float, c: Array) -> Array:
    result: Array = m * (c @ c * np.eye(3) - np.outer(c, c))
    return result


# Rounding of an inertia matrix that was printed or summed: relative to its largest moment.
ROUNDING = 1e-9


def _clearly_possible(inertia: Array) -> bool:
    """Whether the inertia and the second moments of the mass are positive definite by more than rounding.

    The second moments are tr(I)/2 - I: positive if no principal moment exceeds the sum of the others. Leading minors
    above ROUNDING of the trace's powers leave no doubt; what is thin or flat is left to the principal moments.
    """
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.tolist()
    half = 0.5 * (xx + yy + zz)
    for a, b, c, sign in ((xx, yy, zz, 1.0), (half - xx, half - yy, half - zz, -1.0)):
        d, e, f = sign * xy, sign * xz, sign * yz
        det = a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e)
        if not (a > ROUNDING * half and a * b - d * d > ROUNDING * half * half and det > ROUNDING * half * half * half):
            return False
    return True


def impossible(mass: float, inertia: Array) -> tuple[str, str] | None:
    """Reason why no body can have this mass and inertia about its centre, and a hint; None if one can."""
    problem = _impossible_moments(inertia.tobytes())
    if math.isnan(mass) or (mass >= 0.0 and problem is None):
        return None  # NaN is reported when the number is read
    if mass < 0.0 and not math.isnan(inertia.min()):
        return f"mass is negative ({mass:g} kg)", "Give zero or a positive mass."
    return problem


@lru_cache(maxsize=4096)  # models are compiled again with other dimensions
def _impossible_moments(numbers: bytes) -> tuple[str, str] | None:
    """Reason why no body can have these principal moments, and a hint; None if one can, or a number is NaN."""
    inertia = np.frombuffer(numbers).reshape(3, 3)
    if math.isnan(inertia.min()) or _clearly_possible(inertia):
        return None
    moments = np.linalg.eigvalsh(inertia)
    scale = max(abs(moments[0]), abs(moments[2]))
    if moments[0] < -ROUNDING * scale:
        return f"inertia has a negative principal moment ({moments[0]:.6g} kg m^2)", "Check its signs and units."
    if moments[0] + moments[1] < moments[2] - ROUNDING * scale:
        a, b, c = moments
        return (
            f"impossible inertia: principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m^2 break the triangle inequality",
            "The largest cannot exceed the sum of the others; check that it is about the centre of mass.",
        )
    return None
