"""`loopdyn demo`: a four-bar and a 6-UPS platform, compared by all formulations, simulated, and shown on a page."""

from __future__ import annotations

import html
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from loopdyn import library
from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.comparing import Comparison, compare
from loopdyn.analysis.mobility import mobility
from loopdyn.files import write
from loopdyn.model.mechanism import Mechanism
from loopdyn.results.run import Run
from loopdyn.run.simulate import simulate

SECONDS = 4.0  # duration of both motions
FRAMES = 300  # of each part of the page


def platform() -> Mechanism:
    """6-UPS platform whose legs follow a wave, each a sixth of a period after the previous one.

    Examples
    --------
    >>> platform().compile().nv
    21
    """
    m = library.stewart_6ups()
    for k in range(6):
        wave = f"0.05*(sin(3*t + {k}*pi/3) - sin({k}*pi/3))"
        force = f"-stiffness*(position - {wave}) - damping*speed"
        m.forces[f"leg{k + 1}"] = m.forces[f"leg{k + 1}"].model_copy(update={"force": force})
    return m


def main(page: Path = Path("loopdyn_demo.html")) -> None:
    """Run the demonstration, and write a page with animated mechanisms."""
    console = Console(highlight=False, soft_wrap=True)
    four_bar = library.four_bar().compile()
    console.print("[bold]A four-bar linkage: bodies and joints. loopdyn finds the loop, cuts and closes it:[/bold]")
    console.print(str(four_bar.topology))
    console.print(str(mobility(four_bar, assemble(four_bar))))
    console.print("\n[bold]Accelerations and reactions by every formulation, and the time of one evaluation:[/bold]")
    comparisons = [compare(four_bar), compare(platform().compile())]
    console.print(_formulations(comparisons))
    console.print(f"\n[bold]{SECONDS:g} s of motion:[/bold]")
    runs = [_run(library.four_bar()), _run(platform())]
    console.print(_runs(runs))
    write_page(page, runs, comparisons)
    console.print(f"\nOpen it in a browser to see both move: [bold]{page.resolve()}[/bold]")
    console.print("Next: loopdyn inspect examples/mechanisms/four_bar_mm.yaml; loopdyn run FILE --html page.html")


def _run(mechanism: Mechanism) -> Run:
    system = mechanism.compile()
    times = np.linspace(0.0, SECONDS, FRAMES)
    return simulate(system, assemble(system), (0.0, SECONDS), t_eval=times, progress=False).raise_if_failed()


def rows_of(comparisons: list[Comparison]) -> list[list[str]]:
    """Difference from the oracle and microseconds of each formulation, for each mechanism."""
    rows = []
    for name in dict.fromkeys(name for c in comparisons for name in c.results):
        row = [name]
        for c in comparisons:
            if name not in c.results:
                row += ["refused", ""]
                continue
            a, exact = c.results[name].a, c.results["oracle"].a
            row += [f"{np.abs(a - exact).max() / np.abs(exact).max():.0e}", f"{1e6 * c.results[name].seconds:.0f}"]
        rows.append(row)
    return rows


def _formulations(comparisons: list[Comparison]) -> Table:
    table = Table(caption="differ: largest relative difference from the oracle's accelerations; penalty is approximate")
    table.add_column("formulation", no_wrap=True)
    for c in comparisons:
        table.add_column(f"{c.name}\ndiffer", justify="right")
        table.add_column("\nmicroseconds", justify="right")
    for row in rows_of(comparisons):
        table.add_row(*row)
    return table


def _runs(runs: list[Run]) -> Table:
    table = Table()
    for name in ("mechanism", "bodies", "loops", "steps", "seconds", "energy error", "largest residual"):
        table.add_column(name, justify="left" if name == "mechanism" else "right")
    for r in runs:
        s, done = r.system, r.statistics
        counts = (str(s.nb), str(len(s.topology.loops)), str(done.steps), f"{done.seconds:.2f}")
        table.add_row(s.name, *counts, f"{r.energy_error:.0e}", f"{r.largest_residual:.0e}")
    return table


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>loopdyn: demonstration</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1100px; padding: 1rem; }}
iframe {{ width: 100%; height: 640px; border: 1px solid #8886; border-radius: 6px; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .15rem .8rem; text-align: right; }}
td:first-child, th:first-child {{ text-align: left; }} tr + tr {{ border-top: 1px solid #8883; }}
</style></head><body>
<h1>loopdyn: two mechanisms with closed loops</h1>
<p>Both were simulated for {seconds:g} s with loops kept closed to rounding. Space plays and pauses; drag to turn the
view.</p>
{parts}
<h2>Every formulation</h2>
<p>Largest relative difference of the accelerations from the oracle's, and microseconds of one evaluation, called from
Python, on the machine that made this page. Penalty is approximate by nature.</p>
<table><tr><th>formulation</th>{heads}</tr>
{rows}
</table></body></html>
"""


def write_page(page: Path, runs: list[Run], comparisons: list[Comparison]) -> None:
    """Write one page that contains the pages of all runs, and the table of formulations."""
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            inner = run.animate(Path(folder) / "part.html", frames=FRAMES).read_text(encoding="utf-8")
            name = html.escape(run.system.name)
            parts.append(f'<h2>{name}</h2>\n<iframe title="{name}" srcdoc="{html.escape(inner)}"></iframe>')
    heads = "".join(f"<th>{html.escape(c.name)}: differ</th><th>microseconds</th>" for c in comparisons)
    rows = "\n".join("<tr>" + "".join(f"<td>{html.escape(x)}</td>" for x in r) + "</tr>" for r in rows_of(comparisons))
    text = PAGE.format(seconds=SECONDS, parts="\n".join(parts), heads=heads, rows=rows)
    write(page, text)
