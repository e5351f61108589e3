"""Draw choice.png: which formulation for which purpose.

python docs/theory/choice_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

QUESTION, ANSWER = "0.92", "#dbe7f3"
# question, formulation, and what it gives
QUESTIONS = (
    (
        "Equal steps through singular poses,\nor a bounded energy error over long runs?",
        "momentum",
        "symplectic, fixed steps",
    ),
    ("Loops closed exactly at every instant,\nbranches named?", "closure", "loops in closed form"),
    ("Equations in a few coordinates\nthat you can see and choose?", "partition", "minimal coordinates by a criterion"),
    ("Reduction of loops to bodies of a tree,\nno multipliers?", "rcr", "recursive, linear in small loops"),
    ("The equations of all bodies at once?", "absolute", "a dozen forms of one sparse system"),
    ("An independent check?", "oracle, relative", "dense, slow, share little code"),
)


def box(ax: Axes, x: float, y: float, width: float, text: str, colour: str, bold: bool = False) -> None:
    """Text in a box whose left edge is at x and whose middle is at y."""
    ax.add_patch(plt.Rectangle((x, y - 0.36), width, 0.72, facecolor=colour, edgecolor="0.3", lw=1))
    weight = "bold" if bold else "normal"
    ax.text(x + width / 2, y, text, ha="center", va="center", fontsize=10.5, weight=weight)


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], text: str) -> None:
    """Arrow with a word beside it."""
    ax.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": "0.2"})
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    ax.text(x + 0.07, y + (0.07 if start[1] == end[1] else -0.06), text, fontsize=9.5, color="0.2")


def main() -> None:
    """Draw the questions one below another, each with its answer on the right."""
    figure, ax = plt.subplots(figsize=(8.6, 7.4))
    for k, (question, name, gives) in enumerate(QUESTIONS):
        y = -1.05 * k
        box(ax, 0, y, 4.4, question, QUESTION)
        box(ax, 5.2, y, 3.9, f"{name}\n", ANSWER, bold=True)
        ax.text(7.15, y - 0.16, gives, ha="center", va="center", fontsize=9.5)
        arrow(ax, (4.4, y), (5.2, y), "yes")
        arrow(ax, (2.2, y - 0.36), (2.2, y - 0.69), "no")
    y = -1.05 * len(QUESTIONS)
    box(ax, 0, y, 9.1, "auto\n", ANSWER, bold=True)
    ax.text(4.55, y - 0.16, "graph in regular motion, momentum steps through singular poses", ha="center", va="center")
    ax.set(xlim=(-0.05, 9.15), ylim=(y - 0.45, 0.45))
    ax.axis("off")
    figure.tight_layout(pad=0.2)
    figure.savefig(Path(__file__).with_name("choice.png"), dpi=110)


if __name__ == "__main__":
    main()
