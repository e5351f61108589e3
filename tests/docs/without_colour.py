"""Whether the curves of a figure differ without their colours; also a watch on all figures that a script saves."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure


def look_alike(figure: Figure) -> list[str]:
    """Labels of curves of one picture that differ from an earlier one in colour alone."""
    found = []
    for ax in figure.axes:
        seen: dict[tuple, str] = {}
        for line in ax.get_lines():
            label = str(line.get_label())
            if label.startswith("_"):
                continue
            filled = str(line.get_markerfacecolor()) == "none"
            style = (line.get_linestyle(), str(line.get_dashes() if hasattr(line, "get_dashes") else ""))
            look = (*style, line.get_marker(), filled, round(float(line.get_linewidth()), 1))
            if look in seen and seen[look] != label:
                found.append(f"{ax.get_title() or figure.get_suptitle()}: {seen[look]} and {label}")
            seen.setdefault(look, label)
    return found


def watch() -> list[str]:
    """List to which every figure that is saved from now on adds its curves that look alike."""
    found: list[str] = []
    saved = Figure.savefig

    def savefig(self: Figure, *args: Any, **named: Any) -> Any:
        found.extend(look_alike(self))
        return saved(self, *args, **named)

    Figure.savefig = savefig  # type: ignore[method-assign]
    return found
