"""Draw docs/reference/elements/*.svg: every constraint, contact and force, with the sign of what it does.

python docs/element_pictures.py

The first body (`on`, `body1`, the ground) is grey with an outline of short dashes, the second (`body`, `body2`) is
blue; what the element prescribes or measures and the positive direction of its load are orange. Drawings are planar.
`tests/docs/test_element_reference.py` compares the files with what this script draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import atan2, cos, hypot, pi, sin
from pathlib import Path

FOLDER = Path(__file__).parent / "reference" / "elements"
WIDTH, HEIGHT = 360, 200
FIRST, SECOND, VALUE, PLAIN = "#666666", "#1f5fa8", "#b3410e", "#222222"
HEAD = 8.0  # length of an arrow head in px

Spot = tuple[float, float]  # x to the right, y down, px


def between(a: Spot, b: Spot, fraction: float = 0.5) -> Spot:
    """Point on the line from a to b."""
    return a[0] + fraction * (b[0] - a[0]), a[1] + fraction * (b[1] - a[1])


@dataclass
class Sheet:
    """Shapes of a drawing, in the order in which they are added."""

    parts: list[str] = field(default_factory=list)

    def line(
        self, points: Sequence[Spot], colour: str = PLAIN, width: float = 1.8, dash: str = "", fill: str = "none"
    ) -> None:
        """Open line, or an area if `fill` is given."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        kind = "polyline" if fill == "none" else "polygon"
        opacity = "" if fill == "none" else ' fill-opacity="0.13"'
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<{kind} points="{path}" fill="{fill}"{opacity} stroke="{colour}" stroke-width="{width}"{dashes}/>'
        )

    def arrow(self, start: Spot, tip: Spot, colour: str = VALUE, width: float = 2.4) -> None:
        """Straight arrow."""
        length = hypot(tip[0] - start[0], tip[1] - start[1])
        ux, uy = (tip[0] - start[0]) / length, (tip[1] - start[1]) / length
        neck = tip[0] - HEAD * ux, tip[1] - HEAD * uy
        self.line([start, neck], colour, width)
        self._head(tip, (ux, uy), colour)

    def _head(self, tip: Spot, along: Spot, colour: str) -> None:
        (x, y), (ux, uy) = tip, along
        corners = [tip] + [
            (x - HEAD * ux + s * 0.45 * HEAD * uy, y - HEAD * uy - s * 0.45 * HEAD * ux) for s in (1, -1)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        self.parts.append(f'<polygon points="{path}" fill="{colour}"/>')

    def measure(self, a: Spot, b: Spot, words: str, dx: float = 0, dy: float = -6) -> None:
        """Line with arrows at both ends and words at its middle."""
        self.arrow(between(a, b), a, VALUE, 1.6)
        self.arrow(between(a, b), b, VALUE, 1.6)
        x, y = between(a, b)
        self.text((x + dx, y + dy), words, VALUE, "middle", bold=True)

    def turn(self, centre: Spot, radius: float, start: float, end: float, words: str = "", off: Spot = (0, 0)) -> None:
        """Arc with an arrow head; angles in radians, counterclockwise as seen."""
        x, y = centre
        steps = [start + (end - start) * k / 24 for k in range(25)]
        self.line([(x + radius * cos(s), y - radius * sin(s)) for s in steps], VALUE, 2.4)
        sense = 1 if end > start else -1
        self._head((x + radius * cos(end), y - radius * sin(end)), (-sense * sin(end), -sense * cos(end)), VALUE)
        if words:
            middle = steps[14]
            at = x + (radius + 10) * cos(middle) + off[0], y - (radius + 10) * sin(middle) + off[1]
            self.text(at, words, VALUE, bold=True)

    def text(self, at: Spot, words: str, colour: str = PLAIN, anchor: str = "start", bold: bool = False) -> None:
        """Words."""
        weight = ' font-weight="bold"' if bold else ""
        side = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" fill="{colour}"{side}{weight}>{words}</text>')

    def bar(self, a: Spot, b: Spot, colour: str, half: float = 11.0) -> None:
        """Body: a bar with round ends."""
        angle = atan2(b[1] - a[1], b[0] - a[0])
        ends = [(a, angle + pi / 2), (b, angle - pi / 2)]
        outline = [
            (p[0] + half * cos(s + pi * k / 12), p[1] + half * sin(s + pi * k / 12)) for p, s in ends for k in range(13)
        ]
        self.line(outline, colour, dash="4 3" if colour == FIRST else "", fill=colour)

    def disc(self, centre: Spot, radius: float, colour: str, fill: bool = True) -> None:
        """Body: a disc."""
        dash = ' stroke-dasharray="4 3"' if colour == FIRST else ""
        inside = f'fill="{colour}" fill-opacity="0.13"' if fill else 'fill="none"'
        self.parts.append(
            f'<circle cx="{centre[0]:.1f}" cy="{centre[1]:.1f}" r="{radius:g}" {inside} stroke="{colour}" '
            f'stroke-width="1.8"{dash}/>'
        )

    def dot(self, at: Spot, words: str = "", colour: str = PLAIN, off: Spot = (7, -7)) -> None:
        """Point with a name."""
        self.parts.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3.4" fill="{colour}"/>')
        if words:
            self.text((at[0] + off[0], at[1] + off[1]), words, colour)

    def hatch(self, a: Spot, b: Spot, depth: float = 9.0) -> None:
        """Ground or material: a line with strokes on its right, seen from a to b on the screen."""
        length = hypot(b[0] - a[0], b[1] - a[1])
        ux, uy = (b[0] - a[0]) / length, (b[1] - a[1]) / length
        self.line([a, b], FIRST, 2.2)
        for k in range(int(length // 12)):
            x, y = a[0] + (12 * k + 8) * ux, a[1] + (12 * k + 8) * uy
            self.line([(x, y), (x - depth * (ux + uy) * 0.8, y + depth * (ux - uy) * 0.8)], FIRST, 1)

    def coil(self, a: Spot, b: Spot, turns: int = 6, half: float = 7.0) -> None:
        """Spring."""
        length = hypot(b[0] - a[0], b[1] - a[1])
        ux, uy = (b[0] - a[0]) / length, (b[1] - a[1]) / length
        points = [a, between(a, b, 0.12)]
        for k in range(2 * turns):
            x, y = between(a, b, 0.12 + 0.76 * (k + 0.5) / (2 * turns))
            side = half if k % 2 else -half
            points.append((x - side * uy, y + side * ux))
        self.line([*points, between(a, b, 0.88), b], PLAIN, 1.5)

    def damper(self, a: Spot, b: Spot, half: float = 7.0) -> None:
        """Dashpot."""
        length = hypot(b[0] - a[0], b[1] - a[1])
        nx, ny = -(b[1] - a[1]) / length * half, (b[0] - a[0]) / length * half
        p, q, r = between(a, b, 0.36), between(a, b, 0.64), between(a, b, 0.5)
        self.line([a, p], PLAIN, 1.5)
        self.line(
            [(q[0] + nx, q[1] + ny), (p[0] + nx, p[1] + ny), (p[0] - nx, p[1] - ny), (q[0] - nx, q[1] - ny)], PLAIN, 1.5
        )
        self.line([(r[0] + nx * 0.8, r[1] + ny * 0.8), (r[0] - nx * 0.8, r[1] - ny * 0.8)], PLAIN, 1.5)
        self.line([r, b], PLAIN, 1.5)

    def svg(self, title: str) -> str:
        """The file."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'font-family="sans-serif" font-size="13">\n<title>{title}</title>\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n'
        )
        return head + "\n".join(self.parts) + "\n</svg>\n"


def _two_bars(s: Sheet, first: str = "body1", second: str = "body2") -> tuple[Spot, Spot]:
    """Two bodies with a point each."""
    a, b = (95.0, 110.0), (262.0, 72.0)
    s.bar((40, 150), a, FIRST)
    s.bar(b, (325, 118), SECOND)
    s.text((20, 185), first, FIRST)
    s.text((300, 150), second, SECOND)
    s.dot(a, "point1", off=(-48, -12))
    s.dot(b, "point2", off=(4, -16))
    return a, b


def distance(s: Sheet) -> None:
    """Rod between two points."""
    a, b = _two_bars(s)
    s.line([a, b], PLAIN, 1.4)
    s.measure((100, 132), (267, 94), "length", dy=20)


def point_on_line(s: Sheet) -> None:
    """Pin on a straight line."""
    s.hatch((40, 130), (320, 130))
    s.text((290, 165), "on", FIRST)
    s.bar((180, 130), (255, 45), SECOND)
    s.text((272, 45), "body", SECOND)
    s.dot((180, 130), "point", off=(-42, 20))
    s.arrow((60, 100), (120, 100))
    s.text((60, 92), "direction", VALUE, bold=True)


def point_on_plane(s: Sheet) -> None:
    """Point in a plane, seen obliquely."""
    s.line([(40, 160), (110, 95), (330, 95), (260, 160)], FIRST, dash="4 3", fill=FIRST)
    s.text((52, 180), "on", FIRST)
    s.bar((190, 128), (250, 40), SECOND)
    s.text((268, 45), "body", SECOND)
    s.dot((190, 128), "point", off=(10, 14))
    s.arrow((110, 128), (110, 60))
    s.text((50, 66), "normal", VALUE, bold=True)


def _curve(k: float) -> Spot:
    return 40 + 280 * k, 125 - 42 * sin(2 * pi * k)


def point_on_curve(s: Sheet) -> None:
    """Pin on a curve, with its two normals."""
    s.line([_curve(k / 60) for k in range(61)], FIRST, 2.2, dash="4 3")
    s.text((300, 160), "on", FIRST)
    at = _curve(0.38)
    s.bar(at, (230, 35), SECOND)
    s.text((246, 40), "body", SECOND)
    s.dot(at, "point", off=(-46, -6))
    x, y = _curve(0.75)
    s.text((x - 14, y - 8), "c(u)", FIRST)
    s.arrow(at, (at[0] + 26, at[1] + 40))
    s.text((at[0] + 32, at[1] + 48), "fn", VALUE, bold=True)
    s.text((40, 190), "fb: across the plane of the picture", VALUE)


def slot(s: Sheet) -> None:
    """Pin in a slot."""
    s.bar((60, 130), (300, 130), FIRST, 26)
    s.line([(80, 119), (280, 119)], FIRST)
    s.line([(80, 141), (280, 141)], FIRST)
    s.text((60, 180), "on", FIRST)
    s.bar((170, 130), (230, 45), SECOND)
    s.text((248, 45), "body", SECOND)
    s.dot((170, 130), "point", off=(-44, 6))
    s.arrow((200, 176), (270, 176))
    s.text((276, 181), "direction", VALUE, bold=True)
    s.text((20, 40), "axis: out of the picture", VALUE)


def point_motion(s: Sheet) -> None:
    """Point that follows a path in time."""
    s.hatch((30, 170), (120, 170))
    s.text((30, 195), "on", FIRST)
    s.arrow((40, 165), (40, 110), FIRST, 1.6)
    s.arrow((40, 165), (95, 165), FIRST, 1.6)
    path = [(90 + 190 * k / 40, 115 - 45 * sin(pi * k / 40) - 20 * k / 40) for k in range(41)]
    s.line(path, VALUE, 2, dash="6 4")
    s.text((212, 32), "x(t), y(t), z(t)", VALUE, bold=True)
    s.bar(path[16], (250, 150), SECOND)
    s.text((268, 150), "body", SECOND)
    s.dot(path[16], "point", off=(-44, -6))


def rolling(s: Sheet) -> None:
    """Wheel on a plane."""
    s.hatch((40, 165), (320, 165))
    s.text((290, 193), "on", FIRST)
    s.disc((170, 110), 55, SECOND)
    s.text((232, 80), "body", SECOND)
    s.dot((170, 110), "centre", off=(-46, -6))
    s.measure((170, 110), (170, 165), "radius", dx=28, dy=4)
    s.arrow((80, 165), (80, 100))
    s.text((40, 92), "normal", VALUE, bold=True)
    s.text((245, 155), "no slip here", VALUE)
    s.line([(242, 152), (178, 164)], VALUE, 1)


def _cam(s: Sheet, gap: float, first: str, second: str) -> None:
    """Circle below a flat follower, so far apart."""
    s.disc((150, 135), 48, FIRST)
    s.dot((128, 148), "", FIRST)
    s.text((204, 160), first, FIRST)
    y = 87 - gap
    s.line(
        [(80, y), (240, y), (240, y - 16), (170, y - 16), (170, 12), (140, 12), (140, y - 16), (80, y - 16)],
        SECOND,
        fill=SECOND,
    )
    s.text((250, y - 4), second, SECOND)


def higher_pair(s: Sheet) -> None:
    """Cam and flat follower that stay in contact."""
    _cam(s, 0, "body1, shape1", "body2, shape2")
    s.arrow((150, 87), (150, 42))
    s.text((180, 40), "fn on body 2", VALUE, bold=True)


def coupler(s: Sheet) -> None:
    """Two gears."""
    s.disc((120, 105), 62, FIRST)
    s.disc((230, 105), 46, SECOND)
    s.dot((120, 105))
    s.dot((230, 105))
    s.turn((120, 105), 36, 0.4, 2.2, "A", (-4, 4))
    s.turn((230, 105), 26, 2.6, 0.8, "B", (-2, 4))
    s.text((180, 190), "62 A + 46 B = 0", VALUE, "middle", bold=True)


def relation(s: Sheet) -> None:
    """A curve in the plane of two coordinates."""
    s.arrow((60, 170), (60, 25), PLAIN, 1.4)
    s.arrow((60, 170), (310, 170), PLAIN, 1.4)
    s.text((296, 190), "a", PLAIN)
    s.text((40, 34), "s", PLAIN)
    s.line([(80 + 5 * k, 150 - 0.03 * k * k - 20 * sin(k / 7)) for k in range(45)], VALUE, 2.2)
    s.text((120, 60), "f(a, s, t) = 0", VALUE, bold=True)


def velocity_relation(s: Sheet) -> None:
    """Skate: speed along its edge only."""
    s.bar((110, 130), (230, 80), SECOND, 14)
    s.text((60, 150), "body", SECOND)
    s.arrow((170, 105), (300, 51))
    s.text((268, 45), "v allowed", VALUE, bold=True)
    s.line([(170, 105), (140, 33)], VALUE, 1.4, dash="3 3")
    s.text((60, 34), "f(v, q, t) = 0", VALUE, bold=True)


def driver(s: Sheet) -> None:
    """Crank whose angle is prescribed."""
    s.hatch((60, 160), (140, 160))
    s.line([(80, 160), (100, 130), (120, 160)], FIRST, fill=FIRST)
    s.bar((100, 130), (240, 60), SECOND)
    s.dot((100, 130))
    s.line([(100, 130), (230, 130)], FIRST, 1, dash="4 3")
    s.turn((100, 130), 92, 0.0, 0.46, "q = motion(t)", (0, 4))
    s.text((20, 30), "load of the drive: positive in this sense", VALUE)


def stop(s: Sheet) -> None:
    """Bounded angle."""
    s.hatch((60, 160), (140, 160))
    s.bar((100, 140), (235, 92), SECOND)
    s.dot((100, 140))
    s.line([(150, 40), (176, 62)], FIRST, 4)
    s.line([(236, 168), (264, 156)], FIRST, 4)
    s.text((116, 34), "upper", FIRST)
    s.text((268, 172), "lower", FIRST)
    s.turn((100, 140), 150, -0.16, 0.34, "joint", (2, 6))
    s.text((186, 66), "gap &#8805; 0, force &#8805; 0", VALUE, bold=True)


def backlash(s: Sheet) -> None:
    """Tooth between two flanks."""
    s.line(
        [(60, 165), (60, 60), (100, 60), (130, 140), (230, 140), (260, 60), (300, 60), (300, 165)],
        FIRST,
        dash="4 3",
        fill=FIRST,
    )
    s.line([(140, 20), (155, 118), (190, 118), (205, 20)], SECOND, fill=SECOND)
    s.measure((114, 100), (152, 100), "play/2", dx=-44, dy=-50)
    s.measure((194, 100), (245, 100), "play/2", dx=50, dy=-50)


def contact(s: Sheet) -> None:
    """Cam and follower that may separate."""
    _cam(s, 16, "body1, shape1", "body2, shape2")
    s.text((190, 84), "gap &#8805; 0", VALUE, bold=True)
    s.line([(186, 80), (152, 80)], VALUE, 1)


def sphere_on_plane(s: Sheet) -> None:
    """Sphere above a plane."""
    s.hatch((40, 165), (320, 165))
    s.text((290, 193), "on", FIRST)
    s.disc((170, 100), 50, SECOND)
    s.text((226, 70), "body", SECOND)
    s.dot((170, 100), "centre", off=(-46, -6))
    s.measure((170, 100), (205, 64), "radius", dx=-22, dy=-6)
    s.arrow((80, 165), (80, 100))
    s.text((34, 92), "outward", VALUE, bold=True)
    s.text((200, 160), "gap &#8805; 0", VALUE, bold=True)


def spring_damper(s: Sheet) -> None:
    """Spring and dashpot side by side."""
    a, b = _two_bars(s)
    up, down = [(p[0] - 3, p[1] - 11) for p in (a, b)], [(p[0] + 3, p[1] + 11) for p in (a, b)]
    s.line([up[0], down[0]], PLAIN, 1.5)
    s.line([up[1], down[1]], PLAIN, 1.5)
    s.coil(up[0], up[1])
    s.damper(down[0], down[1])
    s.arrow(a, between(a, b, 0.24))
    s.arrow(b, between(a, b, 0.76))
    s.text((150, 150), "positive: pulls", VALUE, bold=True)


def actuator(s: Sheet) -> None:
    """Cylinder."""
    a, b = _two_bars(s)
    p, q = between(a, b, 0.15), between(a, b, 0.6)
    s.bar(p, q, PLAIN, 9)
    s.line([between(a, b, 0.45), b], PLAIN, 2.4)
    s.line([a, p], PLAIN, 2.4)
    s.arrow((a[0] + 2, a[1] + 8), (a[0] - 44, a[1] + 26))
    s.arrow(b, (b[0] + 48, b[1] - 11))
    s.text((120, 150), "positive: pushes apart", VALUE, bold=True)


def bushing(s: Sheet) -> None:
    """Elastic ring between two bodies."""
    s.bar((40, 150), (140, 110), FIRST, 14)
    s.bar((185, 92), (320, 60), SECOND, 14)
    s.coil((140, 110), (185, 92), 3, 6)
    s.text((20, 190), "body1", FIRST)
    s.text((300, 95), "body2", SECOND)
    s.arrow((185, 92), (215, 130))
    s.text((170, 150), "load on body 2: &#8722;k d", VALUE, bold=True)
    s.turn((185, 92), 40, 0.9, 2.0, "&#8722;k&#952; &#952;", (-20, -2))


def _crank(s: Sheet) -> None:
    """Crank on the ground."""
    s.hatch((60, 165), (140, 165))
    s.line([(80, 165), (100, 135), (120, 165)], FIRST, fill=FIRST)
    s.bar((100, 135), (250, 70), SECOND)
    s.dot((100, 135))
    s.line([(100, 135), (260, 135)], FIRST, 1, dash="4 3")
    s.turn((100, 135), 140, 0.0, 0.39, "q", (-2, 6))


def joint_spring(s: Sheet) -> None:
    """Spiral spring about a pin."""
    _crank(s)
    s.line(
        [(100 + (8 + 1.1 * k / 3) * cos(k / 3), 135 - (8 + 1.1 * k / 3) * sin(k / 3)) for k in range(58)], PLAIN, 1.3
    )
    s.text((130, 30), "load: &#8722;k (q &#8722; rest) &#8722; c q&#775;", VALUE, bold=True)


def joint_friction(s: Sheet) -> None:
    """Load over speed."""
    s.arrow((40, 105), (320, 105), PLAIN, 1.4)
    s.arrow((180, 185), (180, 20), PLAIN, 1.4)
    s.text((300, 125), "speed", PLAIN)
    s.text((188, 30), "load", PLAIN)
    tanh = [(1.4 * k, (2.718281828 ** (k / 6) - 1) / (2.718281828 ** (k / 6) + 1)) for k in range(-90, 91)]
    s.line([(180 + x, 105 + 44 * y + 0.14 * x) for x, y in tanh], VALUE, 2.2)
    s.text((26, 34), "coulomb + viscous", VALUE, bold=True)
    s.measure((206, 85), (180, 85), "transition", dx=48, dy=4)


def joint_tendon(s: Sheet) -> None:
    """Belt over two pulleys."""
    s.disc((110, 110), 45, FIRST)
    s.disc((260, 110), 28, SECOND)
    s.line([(106, 65), (262, 82)], PLAIN, 2)
    s.line([(106, 155), (262, 138)], PLAIN, 2)
    s.turn((110, 110), 24, 0.2, 2.2, "q1", (-10, -2))
    s.turn((260, 110), 14, 0.2, 2.6, "q2", (-2, -4))
    s.text((180, 188), "length = c1 q1 + c2 q2", VALUE, "middle", bold=True)


def motor(s: Sheet) -> None:
    """Motor on a crank."""
    _crank(s)
    s.disc((100, 135), 22, PLAIN, fill=False)
    s.text((94, 126), "M", PLAIN)
    s.turn((100, 135), 62, -0.1, 1.5, "torque", (-6, 0))


def applied(s: Sheet) -> None:
    """Force and torque on a body."""
    s.bar((70, 150), (250, 90), SECOND, 15)
    s.text((60, 190), "body", SECOND)
    s.dot((230, 97), "point", off=(-16, 26))
    s.arrow((230, 97), (300, 40))
    s.text((306, 44), "force", VALUE, bold=True)
    s.turn((140, 127), 30, -0.2, 2.6, "torque", (-30, -6))


DRAWINGS: tuple[Callable[[Sheet], None], ...] = (
    distance, point_on_line, point_on_plane, point_on_curve, slot, point_motion, rolling, higher_pair, coupler,
    relation, velocity_relation, driver, stop, backlash, contact, sphere_on_plane, spring_damper, actuator, bushing,
    joint_spring, joint_friction, joint_tendon, motor, applied,
)  # fmt: skip


def pictures() -> dict[str, str]:
    """Content of every file, by the name of the element."""
    made = {}
    for draw in DRAWINGS:
        sheet = Sheet()
        draw(sheet)
        made[draw.__name__] = sheet.svg(f"{draw.__name__}: {(draw.__doc__ or '').rstrip('.')}")
    return made


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name, content in pictures().items():
        (FOLDER / f"{name}.svg").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
