"""Draw docs/frames_drawn.svg and docs/frames_moved.svg: frames F and M of a hinge, its angle, and its reaction.

python docs/frames_pictures.py
"""

from __future__ import annotations

from math import cos, pi, sin
from pathlib import Path

from element_pictures import FIRST, PLAIN, SECOND, VALUE, Sheet, Spot

FOLDER = Path(__file__).parent
PIN = (170.0, 110.0)
ANGLE = 0.75  # rad, of the moved child


def off(at: Spot, angle: float, length: float) -> Spot:
    """Place at a distance in a direction, counter-clockwise from the right."""
    return at[0] + length * cos(angle), at[1] - length * sin(angle)


def axes(s: Sheet, at: Spot, angle: float, name: str, colour: str) -> None:
    """Axes x and y of a frame; z is towards the reader."""
    for label, turn, shift in (("x", 0.0, (4, 4)), ("y", pi / 2, (4, -2))):
        tip = off(at, angle + turn, 62)
        s.arrow(at, tip, colour, 1.8)
        s.text((tip[0] + shift[0], tip[1] + shift[1]), f"{label} of {name}", colour)


def bodies(s: Sheet, angle: float) -> None:
    """Parent to the left of the pin, child to the right, turned by the angle."""
    s.bar((30, 150), PIN, FIRST)
    s.bar(PIN, off(PIN, angle - 0.3, 120), SECOND)
    s.text((22, 186), "parent", FIRST)


def drawn(s: Sheet) -> None:
    """Reference pose: F and M coincide, the angle is zero."""
    bodies(s, 0.0)
    axes(s, PIN, 0.0, "F and M", PLAIN)
    s.text((282, 172), "child", SECOND)
    s.text((12, 20), "as drawn: A = 0", PLAIN, bold=True)
    s.dot(PIN)


def moved(s: Sheet) -> None:
    """Moved pose: M has turned with the child; the reaction acts on the child, its negative on the parent."""
    bodies(s, ANGLE)
    axes(s, PIN, 0.0, "F", FIRST)
    axes(s, PIN, ANGLE, "M", SECOND)
    s.turn(PIN, 48, 0.0, ANGLE, "A", (6, 4))
    s.text((290, 70), "child", SECOND)
    s.text((12, 20), "moved: A is positive about z, towards the reader", PLAIN, bold=True)
    s.arrow(PIN, off(PIN, -0.9, 62))
    s.text((216, 172), "reaction on the child", VALUE, bold=True)
    beside = off(PIN, pi + 0.28, 50)  # on the parent, so that the arrows do not cover each other
    s.arrow(beside, off(beside, pi - 0.9, 62), FIRST)
    s.text((12, 52), "its negative", FIRST)
    s.text((12, 68), "on the parent", FIRST)
    s.dot(PIN)


def pictures() -> dict[str, str]:
    """Content of both files, by their names."""
    made = {}
    for draw in (drawn, moved):
        sheet = Sheet()
        draw(sheet)
        made[f"frames_{draw.__name__}"] = sheet.svg((draw.__doc__ or "").rstrip("."))
    return made


if __name__ == "__main__":
    for name, content in pictures().items():
        (FOLDER / f"{name}.svg").write_text(content, encoding="utf-8")
