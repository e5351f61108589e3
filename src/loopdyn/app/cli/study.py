"""``loopdyn study`` and ``loopdyn tolerance``: many designs of a mechanism, and the effect of its tolerances."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from loopdyn.app.cli.answers import INTERRUPTED, exit_on_error, print_json, print_lines, print_text
from loopdyn.app.cli.models import load_mechanism
from loopdyn.app.cli.options import (
    AsJson,
    ModelFile,
    Parameters,
    assignments,
    check_names,
    draw_into_files,
    write_files,
)

if TYPE_CHECKING:
    from loopdyn.results.study import Study

Sampling = Literal["random", "latin hypercube", "sobol", "saltelli"]
Measures = Annotated[
    list[str],
    typer.Option(
        "--measure",
        "-m",
        metavar="[NAME:] WHAT",
        help="'toe: peak(C.fx)', 'P at A=60', 'peak loads'; repeatable.",
    ),
]
Limits = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=LOW:HIGH", help="Limits of a measure, either may be empty; repeatable."),
]
Store = Annotated[Path | None, typer.Option("--store", help="Folder that keeps finished designs, to continue from.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the samples.")]
Processes = Annotated[bool, typer.Option("--processes", help="Compute in processes instead of threads.")]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="Dask scheduler, or 'local' for a new one."),
]
Workers = Annotated[int | None, typer.Option("--workers", help="Number of threads or processes.")]
Csv = Annotated[Path | None, typer.Option("--csv", help="Write a row per design to this file.")]
Html = Annotated[
    Path | None, typer.Option("--html", help="Write a page with yield, histograms and contributions to this file.")
]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Write all results to this .nc file.")]
Time = Annotated[float | None, typer.Option("-t", "--time", metavar="SECONDS", help="Duration of a run in s.")]
Drive = Annotated[str | None, typer.Option("--drive", metavar="LABEL=FROM:TO[:N]", help="Drive an input over a range.")]


def study(
    file: ModelFile,
    measure: Measures,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="NAME=VALUES", help="'38:42:5', '38,40,42' or '40 ± 0.05 normal'; repeatable."),
    ] = None,
    table: Annotated[Path | None, typer.Option("--table", help="Table of designs, .csv.")] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Number of samples of tolerances.")] = None,
    method: Annotated[Sampling | None, typer.Option("--method", help="How samples are drawn.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the samples.")] = None,
    time: Time = None,
    drive: Drive = None,
    equilibrium: Annotated[bool, typer.Option("--equilibrium", help="Measure static equilibria.")] = False,
    limit: Limits = None,
    store: Store = None,
    processes: Processes = False,
    cluster: Cluster = None,
    workers: Workers = None,
    csv: Csv = None,
    output: Output = None,
    html: Html = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print number, time and size, and stop.")] = False,
    changed: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Analyse many designs of a mechanism: a grid, a table, or samples of tolerances.

    Without --vary and --table the tolerances of the model are sampled. Every
    design has a row in --csv, also one that cannot be assembled. With --store a
    study that was interrupted or killed continues where it stopped; after Ctrl-C
    the exit code is 130.

    Example: loopdyn study four_bar.yaml -m "peak(C radial force)" -t 1 --vary crank=0.25:0.35:11
    """
    from loopdyn.studies.study import study as analyse

    check_names(csv=(csv, ()), output=(output, (".nc", ".h5")), html=(html, (".html",)))
    designs = _designs(vary, table)
    over, limits = _over(time, drive, equilibrium), _limits(limit)
    with exit_on_error(f"loopdyn study {file}", "the model or the options"):
        mechanism = load_mechanism(file, changed)
        options: dict[str, Any] = {"samples": samples, "method": method, "seed": seed, "store": store}
        options |= {"executor": _executor(processes, cluster), "workers": workers, "over": over}
        if explain:
            print_text(str(analyse(mechanism, designs, _measures(measure), explain=True, **options)))
            return
        found = analyse(mechanism, designs, _measures(measure), progress=not as_json, **options)
        written = write_files((csv, found.to_csv), (output, found.save))  # before limits may turn out to be wrong
        reached = None if limits is None else found.yield_(limits)
        if html is not None:
            draw_into_files()
        written += write_files((html, lambda x: found.report(x, limits)))
    if as_json:
        data = {"name": found.name, "units": found.units, "stopped": found.stopped, "written": written}
        rows = found.table().to_dict(orient="records")
        print_json({**data, "designs": rows, **({} if reached is None else {"yield": vars(reached)})})
    else:
        print_text("\n".join([str(found), *([str(reached)] if reached is not None else [])]))
        print_lines(*([f"written: {', '.join(written)}"] if written else []))
    _exit_by(found)


def tolerance(
    file: ModelFile,
    measure: Measures,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="NAME=TOLERANCE", help="'crank=± 0.05 normal'; repeatable."),
    ] = None,
    clearance: Annotated[
        list[str] | None,
        typer.Option("--clearance", metavar="JOINT=RADIUS", help="Radial clearance of a pin; repeatable."),
    ] = None,
    samples: Annotated[int, typer.Option("--samples", help="Number of samples.")] = 2000,
    seed: Seed = 0,
    drive: Drive = None,
    limit: Limits = None,
    store: Store = None,
    processes: Processes = False,
    cluster: Cluster = None,
    workers: Workers = None,
    csv: Csv = None,
    html: Html = None,
    changed: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Effect of tolerances: worst case, linear statistics (RSS) and Monte Carlo.

    Tolerances are those of the model, `tolerances: {crank: ± 0.05}`, or --vary.
    Prints for each measure the worst case, the deviations and the contribution of
    each dimension, and the yield against --limit.

    Example: loopdyn tolerance four_bar.yaml -m "coupler P at A=60" --vary "crank=± 0.05"
    """
    from loopdyn.studies.tolerance import tolerance as analyse

    check_names(csv=(csv, ()), html=(html, (".html",)))
    given: dict[str, Any] | None = dict(assignments("--vary", vary)) or None
    pins = {joint: _number("--clearance", text) for joint, text in assignments("--clearance", clearance).items()}
    over, limits = _over(None, drive, False), _limits(limit)
    with exit_on_error(f"loopdyn tolerance {file}", "the model or the options"):
        options: dict[str, Any] = {"samples": samples, "seed": seed, "store": store, "over": over, "workers": workers}
        options |= {"clearance": pins or None, "limits": limits, "executor": _executor(processes, cluster)}
        found = analyse(load_mechanism(file, changed), _measures(measure), given, progress=not as_json, **options)
        if html is not None:
            draw_into_files()
        written = write_files((csv, found.study.to_csv), (html, found.report))
    if as_json:
        tables = {"summary": found.summary.to_dict(orient="index")}
        contributions = found.contributions.reset_index().to_dict(orient="records")
        reached = {} if found.yields is None else {"yield": vars(found.yields)}
        about = {"name": found.study.name, "units": found.study.units, "unfinished": found.study.unfinished()}
        print_json({**about, **tables, "contributions": contributions, **reached, "written": written})
    else:
        print_text(str(found))
        print_lines(*([f"written: {', '.join(written)}"] if written else []))
    _exit_by(found.study)


def _exit_by(found: Study) -> None:
    if found.stopped:
        raise typer.Exit(INTERRUPTED if "by the user" in found.stopped else 1)


def _executor(processes: bool, cluster: str | None) -> str | None:
    if processes and cluster:
        raise typer.BadParameter("give one of --processes and --cluster.", param_hint="--cluster")
    return "processes" if processes else "dask" if cluster == "local" else cluster


def _designs(vary: list[str] | None, table: Path | None) -> Any:
    given = assignments("--vary", vary)
    if given and table is not None:
        raise typer.BadParameter("give one of --vary and --table.", param_hint="--table")
    if table is not None:
        return table
    return {name: _values(text) for name, text in given.items()} or None


def _values(text: str) -> Any:
    """Values of a grid from '38:42:5' or '38,40,42'; other texts are tolerances."""
    import numpy as np

    if ":" in text:
        low, high, count = _parts("--vary", text, (3,))
        return np.linspace(low, high, _whole("--vary", count)).tolist()
    if any(mark in text for mark in ("±", "+-", "+/-")) or " " in text.strip():
        return text
    return [_number("--vary", x) for x in text.split(",")]


def _over(time: float | None, drive: str | None, equilibrium: bool) -> Any:
    if (time is not None) + (drive is not None) + equilibrium > 1:
        raise typer.BadParameter("give one of --time, --drive and --equilibrium.", param_hint="--drive")
    if drive is not None:
        (label, text), *_ = assignments("--drive", [drive]).items()
        low, high, *count = _parts("--drive", text, (2, 3))
        return {label: (low, high, *(_whole("--drive", x) for x in count))}
    return "equilibrium" if equilibrium else None if time is None else (0.0, time)


def _measures(given: Iterable[str]) -> dict[str, str]:
    """Measures by name: 'toe: peak(C.fx)', or a text that is its own name."""
    found = {}
    for text in given:
        name, colon, what = text.partition(":")
        found[(name if colon else text).strip()] = (what if colon else text).strip()
    return found


def _limits(given: list[str] | None) -> dict[str, tuple[float | None, float | None]] | None:
    found: dict[str, tuple[float | None, float | None]] = {}
    for text in given or []:
        name, _, band = text.rpartition("=")  # a name may have '=', as in 'x(P) at A=60'
        low, colon, high = band.partition(":")
        if not (name and colon and (low.strip() or high.strip())):
            raise typer.BadParameter(f"'{text}' is not of the form NAME=LOW:HIGH.", param_hint="--limit")
        ends = [_number("--limit", x) if x.strip() else None for x in (low, high)]
        found[name.strip()] = ends[0], ends[1]
    return found or None


def _parts(option: str, text: str, counts: tuple[int, ...]) -> list[float]:
    parts = [_number(option, x) for x in text.split(":")]
    if len(parts) not in counts:
        raise typer.BadParameter(f"'{text}' is not of the form FROM:TO:N.", param_hint=option)
    return parts


def _whole(option: str, number: float) -> int:
    if number != int(number) or number < 2:
        raise typer.BadParameter(f"{number:g} values. Give a whole number from 2 on.", param_hint=option)
    return int(number)


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is no number.", param_hint=option) from None
