"""Draws docs/layers.svg: the packages of loopdyn in the order of their layers, from pyproject.toml and the sources.

    python docs/layers.py

A line runs from a package to each one that it imports when it is loaded, unless that one is reached by way of another.
`tests/docs/test_architecture.py` draws the picture again and compares.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "loopdyn"
PICTURE = Path(__file__).with_name("layers.svg")
WIDTH, ROW, BOX, LEFT = 860, 46, 30, 20  # in pixels


def layers() -> list[list[str]]:
    """Packages and modules of each layer, the highest first, as import-linter checks them."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    return [[name.strip().strip("()") for name in row.split(":")] for row in contract["layers"]]


def imports() -> dict[str, set[str]]:
    """Which package imports which when it is loaded: not inside functions, not for type checkers only."""
    found: dict[str, set[str]] = {name: set() for row in layers() for name in row}
    for path in sorted(SOURCE.rglob("*.py")):
        own = path.relative_to(SOURCE).with_suffix("").parts[0]
        if own in found:
            for statement in ast.parse(path.read_text()).body:
                if isinstance(statement, ast.ImportFrom) and statement.module:
                    found[own] |= set(_packages(statement)) & set(found) - {own}
    return found


def _packages(statement: ast.ImportFrom) -> list[str]:
    """Packages that a statement imports from."""
    first, _, rest = str(statement.module).partition(".")
    if first != "loopdyn":
        return []
    return [rest.partition(".")[0]] if rest else [alias.name for alias in statement.names]


def direct(imported: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Imports that do not follow from others, between packages of different layers."""
    level = {name: n for n, row in enumerate(layers()) for name in row}

    def reach(name: str) -> set[str]:
        below = {other for other in imported[name] if level[other] > level[name]}
        return below.union(*(reach(other) for other in below)) if below else below

    lines = []
    for name, others in imported.items():
        below = {other for other in others if level[other] > level[name]}
        lines += [(name, other) for other in sorted(below) if not any(other in reach(b) for b in below - {other})]
    return lines


def words(name: str) -> str:
    """First line of the docstring of a package."""
    file = SOURCE / name / "__init__.py"
    if not file.is_file():
        file = SOURCE / f"{name}.py"
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return text.splitlines()[0].rstrip(".:")


def drawn() -> str:
    """The picture."""
    rows, place, parts = layers(), {}, []
    for n, row in enumerate(rows):
        step = (WIDTH - 2 * LEFT) / len(row)
        for k, name in enumerate(row):
            place[name] = LEFT + k * step, 10 + n * ROW, step - 8
    for name, other in direct(imports()):
        (x0, y0, w0), (x1, y1, w1) = place[name], place[other]
        a, b = x0 + w0 / 2, x1 + w1 / 2
        parts.append(f'<line x1="{a:.0f}" y1="{y0 + BOX}" x2="{b:.0f}" y2="{y1}" stroke="#90a4ae"/>')
    for name, (x, y, w) in place.items():
        parts.append(
            f'<rect x="{x:.0f}" y="{y}" width="{w:.0f}" height="{BOX}" rx="4" fill="#eceff1" stroke="#607d8b"/>'
        )
        label = f"<tspan font-weight='bold'>{escape(name)}</tspan>"
        if w > 500:
            label += f"  {escape(words(name))}"
        parts.append(f'<text x="{x + 8:.0f}" y="{y + 19}">{label}</text>')
    height = 20 + len(rows) * ROW
    font = 'font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {font}>'
    return "\n".join([head, *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn())
