"""Draw docs/reference/joints/*.svg: frames, axes and coordinates of every joint type.

python docs/joint_pictures.py

Frame F of the parent is drawn in grey, frame M of the child in blue with dashed axes, displaced by coordinates of
convenient size; the poses are those of docs/notation.md. `tests/docs/test_element_reference.py` compares the files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FOLDER = Path(__file__).parent / "reference" / "joints"
WIDTH, HEIGHT, SCALE = 360, 270, 78.0
X, Y, Z = np.eye(3)
PARENT, CHILD, COORDINATE = "#666666", "#1f5fa8", "#b3410e"
HEAD = 7.0  # length of an arrow head in px


def turn(axis: Array, angle: float) -> Array:
    """Rotation matrix about a unit vector."""
    a = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(angle) * a + (1 - np.cos(angle)) * a @ a


@dataclass
class Picture:
    """Shapes of a picture, drawn in the order in which they are added."""

    origin: tuple[float, float] = (120.0, 175.0)
    parts: list[str] = field(default_factory=list)

    def at(self, p: Array) -> Array:
        """Place of a point in px: z up, x to the lower right, y to the upper right."""
        u = 0.86 * p[0] + 0.62 * p[1]
        w = -0.30 * p[0] + 0.34 * p[1] + p[2]
        return np.array([self.origin[0] + SCALE * u, self.origin[1] - SCALE * w])

    def line(self, points: list[Array], colour: str, dashed: bool = False, width: float = 1.8) -> None:
        """Line through points in space."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(self.at, points))
        dash = ' stroke-dasharray="6 3"' if dashed else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>')

    def arrow(self, points: list[Array], colour: str, dashed: bool = False, width: float = 1.8) -> None:
        """Line with a head at its end."""
        self.line(points, colour, dashed, width)
        tip, before = self.at(points[-1]), self.at(points[-2])
        along = (tip - before) / np.linalg.norm(tip - before)
        across = np.array([-along[1], along[0]])
        corners = [tip, tip - HEAD * along + 0.4 * HEAD * across, tip - HEAD * along - 0.4 * HEAD * across]
        self.parts.append(f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}" fill="{colour}"/>')

    def text(self, p: Array, words: str, colour: str, dx: float = 4, dy: float = -4, bold: bool = False) -> None:
        """Words at a point in space."""
        x, y = self.at(p)
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x + dx:.1f}" y="{y + dy:.1f}" fill="{colour}"{weight}>{words}</text>')

    def plate(self, d: Array, E: Array, colour: str) -> None:
        """Square in the x-y plane of a frame: the body."""
        corners = [d + E @ np.array([0.42 * a, 0.42 * b, 0]) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(self.at, corners))
        self.parts.append(f'<polygon points="{path}" fill="{colour}" fill-opacity="0.13" stroke="{colour}"/>')

    def frame(self, d: Array, E: Array, colour: str, name: str, dashed: bool, named: str = "xyz") -> None:
        """Body and axes of a frame; the columns of E are its axes, those of `named` get a name."""
        self.plate(d, E, colour)
        for k, letter in enumerate("xyz"):
            self.arrow([d, d + E[:, k]], colour, dashed)
            if letter not in named:
                continue
            self.text(d + 1.06 * E[:, k], f"{letter}<tspan dy='3' font-size='10'>{name}</tspan>", colour)

    def angle(self, d: Array, E: Array, axis: Array, start: Array, angle: float, label: str, r: float = 0.8) -> None:
        """Arc of an angle about an axis, from a direction; all in axes E."""
        steps = np.linspace(0, angle, 24)
        arc = [d + E @ (r * turn(axis, s) @ start) for s in steps]
        self.arrow(arc, COORDINATE, width=2.4)
        self.text(d + 1.12 * (arc[15] - d), label, COORDINATE, 6, 8, bold=True)

    def slide(self, start: Array, end: Array, label: str) -> None:
        """Arrow of a displacement."""
        self.arrow([start, end], COORDINATE, width=2.4)
        level = abs((end - start)[2]) < 0.5 * float(np.linalg.norm(end - start))
        self.text(
            (start + end) / 2, label, COORDINATE, -16 if level else -8 * len(label) - 6, 18 if level else 10, bold=True
        )

    def axis(self, d: Array, direction: Array, label: str) -> None:
        """Long dash-dotted axis of a joint."""
        a, b = self.at(d - 0.4 * direction), self.at(d + 1.5 * direction)
        self.parts.append(
            f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" stroke="black" '
            'stroke-dasharray="10 3 2 3"/>'
        )
        self.text(d + 1.5 * direction, label, "black", -14, -4)

    def svg(self, title: str) -> str:
        """The file."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'font-family="sans-serif" font-size="13">\n<title>{title}</title>\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n'
        )
        return head + "\n".join(self.parts) + "\n</svg>\n"


O = np.zeros(3)
ONE = np.eye(3)
SPACE = np.array([1.75, 0.35, 0.55])  # displacement of M where it is free in space
TILTED = turn(Y, 0.35) @ turn(X, 0.35)


def one_axis(angle: str = "", slide: str = "", pitch: str = "") -> Picture:
    """Joint with z as its axis."""
    moved = bool(slide or pitch)
    p = Picture((150.0, 235.0 if moved else 190.0))
    d = 0.95 * Z if moved else O
    E = turn(Z, 0.95) if angle else ONE
    p.frame(O, ONE, PARENT, "F", dashed=False, named="xy" if moved else "xyz")
    p.frame(d, E, CHILD, "M", dashed=True, named="xyz" if moved else "xy")
    p.axis(d, Z, "axis")
    if angle:
        p.angle(d, ONE, Z, X, 0.95, angle)
        if moved:
            p.line([d, d + 0.9 * X], PARENT, width=1)
    if moved:
        p.slide(O, d, slide or pitch)
    return p


def universal() -> Picture:
    """Axes along x of F and, turned by the first angle, y."""
    p = Picture()
    p.origin = (150.0, 190.0)
    p.frame(O, ONE, PARENT, "F", dashed=False, named="x")
    first = turn(X, 0.45)
    p.axis(O, X, "axis1")
    p.axis(O, first @ Y, "axis2")
    p.angle(O, ONE, X, Y, 0.45, "A.1", 1.3)
    p.line([O, 1.5 * first @ Z], PARENT, width=1)
    p.angle(O, first, Y, Z, 0.45, "A.2", 1.5)
    tip = 1.75 * first @ turn(Y, 0.45) @ Z
    p.arrow([O, tip], CHILD, dashed=True)
    p.text(tip, "child", CHILD, 2, -14)
    return p


def planar() -> Picture:
    """M moves in the x-y plane of F."""
    p = Picture((70.0, 175.0))
    d, E = np.array([1.7, 0.8, 0]), turn(Z, 0.6)
    p.frame(O, ONE, PARENT, "F", dashed=False)
    p.frame(d, E, CHILD, "M", dashed=True)
    p.slide(O, 1.7 * X, "A.x")
    p.slide(1.7 * X, d, "A.y")
    p.line([d, d + 0.9 * X], PARENT, width=1)
    p.angle(d, ONE, Z, X, 0.6, "A.angle")
    p.text(1.06 * Z, "normal", "black", -54, 0)
    return p


def in_space(turned: bool, moved: bool, labels: tuple[str, ...], words: str = "") -> Picture:
    """M displaced, turned, or both."""
    p = Picture((80.0, 180.0) if moved else (150.0, 165.0))
    d, E = (SPACE if moved else O), (TILTED if turned else ONE)
    p.frame(O, ONE, PARENT, "F", dashed=False)
    p.frame(d, E, CHILD, "M", dashed=True, named="xyz" if turned or moved else "")
    corners = [O, d[0] * X, d[0] * X + d[1] * Y, d]
    for k, label in enumerate(labels):
        p.slide(corners[k], corners[k + 1], label)
    if words:
        p.parts.append(f'<text x="12" y="{HEIGHT - 10}" fill="{COORDINATE}" font-weight="bold">{words}</text>')
    return p


def pictures() -> dict[str, str]:
    """Content of every file by joint type."""
    drawn = {
        "revolute": one_axis(angle="A"),
        "prismatic": one_axis(slide="A"),
        "helical": one_axis(angle="A", pitch="pitch · A"),
        "cylindrical": one_axis(angle="A.angle", slide="A.slide"),
        "universal": universal(),
        "planar": planar(),
        "translational": in_space(False, True, ("A.x", "A.y", "A.z")),
        "spherical": in_space(True, False, (), "A.w A.x A.y A.z: quaternion of M in F"),
        "free": in_space(True, True, ("A.px", "A.py", "A.pz"), "A.w A.x A.y A.z: quaternion of M in F"),
        "weld": in_space(False, False, (), "F and M coincide"),
    }
    return {name: p.svg(f"{name} joint: frame F of the parent, frame M of the child") for name, p in drawn.items()}


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    for name, content in pictures().items():
        (FOLDER / f"{name}.svg").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
