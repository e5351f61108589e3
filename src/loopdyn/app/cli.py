"""The command line.

Exit codes: 0 done, 1 the model failed or a file cannot be written (said plainly), 2 wrong use of the command, 130
stopped by Ctrl-C.
"""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from loopdyn.errors import LoopdynWarning

if TYPE_CHECKING:
    from loopdyn.analysis.drive import Drive
    from loopdyn.analysis.inverse_dynamics import InverseDynamics
    from loopdyn.errors import LoopdynError
    from loopdyn.integrators.base import Integrator
    from loopdyn.model.mechanism import Mechanism
    from loopdyn.results.run import Run
    from loopdyn.system.system import State, System

INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it
SHOWN = 12  # events that the closing table of a run lists

Parameters = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Another value of a parameter; repeatable.")
]
MODEL_FILE = "Model file: .yaml, .xml (MJCF), .urdf (with NAME.loops.yaml, if it is there) or .sdf."
SAMPLES = 200  # intervals of a motion whose times are not given

# What takes time to import is imported by the command that needs it.


class _Commands(TyperGroup):
    """All commands; Ctrl-C in any of them is answered in words."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("stopped by Ctrl-C: files that were not complete are as they were before", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="loopdyn",
    cls=_Commands,
    help="Dynamics of closed-loop and constrained rigid multibody mechanisms.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without box characters must not end in an error
            stream.reconfigure(errors="replace")
    try:
        try:
            app(prog_name="loopdyn")
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:  # no matter of standard output
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to be said there
        if error.errno != errno.EPIPE:  # whoever closed a pipe knows it
            typer.echo(f"standard output cannot be written: {error.strerror}. Free some space.", err=True)
        sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        from loopdyn import __version__

        typer.echo(f"loopdyn {__version__}")
        raise typer.Exit


@contextmanager
def _notes() -> Iterator[None]:
    """Show loopdyn's warnings as notes, without the place in the code, which is of no use here."""
    shown_by_python = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, LoopdynWarning):
            typer.echo(_printable(f"note: {message}"), err=True)
        else:
            shown_by_python(message, category, *place, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = shown_by_python


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    context.with_resource(_notes())


AngleTolerance = Annotated[
    float | None,
    typer.Option(
        help="By how much redundant angles may be open that rounded dimensions keep open, in the file's units."
    ),
]
LengthTolerance = Annotated[float | None, typer.Option(help="The same for lengths.")]


def _tolerance(mechanism: Mechanism, angle: float | None, length: float | None) -> tuple[float, float] | None:
    """Tolerances of assembly in SI units; None if none was given."""
    if angle is None and length is None:
        return None
    units = mechanism.resolver().units
    return (angle or 0.0) * units.factor("angle"), (length or 0.0) * units.factor("length")


def _start(system: System, angle: float | None, length: float | None, t: float | None = None) -> State | None:
    """The start of the model, closed within tolerances; None if none was given: each command then closes it itself."""
    from loopdyn.analysis.assembly import assemble

    tolerance = _tolerance(system.mechanism, angle, length)
    return None if tolerance is None else assemble(system, t=t, tolerance=tolerance)


# ------------------------------------------------------------------------------------------------------ inspect


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=MODEL_FILE)],
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Check a model file and show how the mechanism hangs together and can move.

    Prints the tree of bodies, the cut joints, the loops, the sizes of the
    equations, then mobility, redundant constraints and which reactions are
    unique, at the start of the model. If anything is wrong with the model, every
    problem is listed with its line; if its loops cannot be closed, that is said
    after the topology. The exit code is then 1.

    Example: loopdyn inspect four_bar.yaml
    """
    from loopdyn.analysis.assembly import assemble
    from loopdyn.analysis.mobility import mobility
    from loopdyn.errors import LoopdynError

    try:
        system = _load(file, changed).compile()
    except LoopdynError as error:
        _fail(error, f"loopdyn inspect {file}")
    if not as_json:
        _show(system)
    error_text = ""
    data = _as_data(system) if as_json else {}
    try:
        state = assemble(system, tolerance=_tolerance(system.mechanism, angle_tolerance, length_tolerance))
        found = mobility(system, state)
    except LoopdynError as error:
        error_text = _printable(str(error))
        data |= {"assembled": False, "error": error_text}
    else:
        data |= {"assembled": True, "note": state.note, "mobility": _plain(asdict(found))}
        if not as_json:
            _print_lines("", f"start             {state.note}", "", *str(found).split("\n"))
    if as_json:
        typer.echo(json.dumps(data, indent=2))
    if error_text:
        _stop(f"{error_text}\nThe topology is right; mobility needs closed loops.", f"loopdyn inspect {file}")


def _load(file: Path, changed: list[str] | None) -> Mechanism:
    """The model of a file, with other values of parameters where they are given; says what is not as in the file."""
    from loopdyn.interchange.loading import read_model

    values: dict[str, float | str] = {}
    for name, text in _assignments("--set", changed).items():
        try:
            values[name] = float(text)
        except ValueError:
            values[name] = text  # a formula of other parameters
    mechanism, report = read_model(file)
    if report is not None:  # to standard error: standard output may be JSON
        for line in (report.title, *report.losses()):
            typer.echo(_printable(line), err=True)
    return mechanism.with_(**values)


def _print_lines(*lines: str) -> None:
    for line in lines:
        typer.echo(_printable(line))


def _stop(text: str, command: str, what: str = "the model") -> NoReturn:
    """Say what is wrong, then what to do next."""
    for line in text.split("\n"):
        typer.echo(_printable(line), err=True)
    typer.echo(f"Correct {what}, then run again: {_printable(command)}", err=True)
    raise typer.Exit(1)


def _plain(value: Any) -> Any:
    """The same for JSON: no infinity, which it does not know."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not isfinite(value) else value


# ------------------------------------------------------------------------------------------------------ compare


@app.command()
def compare(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=MODEL_FILE)],
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Run every formulation on one model and print their results side by side.

    Closes the loops at the start of the model, then prints accelerations and
    reactions of all formulations, their largest difference, and the time of one
    evaluation. If the model is wrong or its loops cannot be closed, that is said
    and the exit code is 1.

    Example: loopdyn compare four_bar.yaml
    """
    from loopdyn.analysis.comparing import compare as run
    from loopdyn.errors import LoopdynError

    command = f"loopdyn compare {file}"
    try:
        system = _load(file, changed).compile()
    except LoopdynError as error:
        _fail(error, command)
    try:
        result = run(system, _start(system, angle_tolerance, length_tolerance))
    except LoopdynError as error:
        _stop(str(error), command)
    if as_json:
        typer.echo(json.dumps(_plain(result.as_data()), indent=2))
    else:
        _print_lines(*str(result).split("\n"))


# -------------------------------------------------------------------------------------------------------- drive


@app.command()
def drive(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=MODEL_FILE)],
    joint: Annotated[str, typer.Argument(metavar="JOINT", help="Joint coordinate to drive, e.g. A.")],
    start: Annotated[float, typer.Option("--from", help="Where it begins, in the units of the file.")],
    stop: Annotated[float, typer.Option("--to", help="Where it ends, in the units of the file.")],
    points: Annotated[int, typer.Option("--points", help="Number of poses, at least 2.")] = 361,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write all poses as a table to this file.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write plots: .png, .svg, .pdf.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that shows the motion.")] = None,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Turn the input of a mechanism and see what it does, and where it locks.

    Closes the loops, brings the input to the start of the range and moves it to
    its end. Prints the range of each coordinate and the turning points, dead
    points and change points on the way, all in the units of the file. If the
    input cannot go to the end, what was computed until then is printed and
    written, and the exit code is 1.

    Example: loopdyn drive four_bar.yaml A --from 0 --to 360 --plot turn.png
    """
    from loopdyn.analysis.drive import drive as move
    from loopdyn.errors import LoopdynError

    command = f"loopdyn drive {file} {joint} --from {start:g} --to {stop:g}"
    pictures, pages = (".png", ".svg", ".pdf"), (".html", ".gif", ".mp4", ".png")
    _check_names(csv=(csv, ()), plot=(plot, pictures), html=(html, pages))
    if points < 2:
        raise typer.BadParameter(f"{points} is less than 2.", param_hint="--points")
    if not (isfinite(start) and isfinite(stop)):
        raise typer.BadParameter("the range must be finite.", param_hint="--from, --to")
    try:
        system = _load(file, changed).compile()
    except LoopdynError as error:
        _fail(error, command)
    try:
        near = _start(system, angle_tolerance, length_tolerance)
        result = move(system, joint, (start, stop, points), units="model", near=near)
        written = _write_drive(result, csv=csv, plot=plot, html=html)
    except LoopdynError as error:
        _stop(str(error), command)
    if as_json:
        typer.echo(json.dumps(_plain(result.as_data() | {"written": written}), indent=2))
    else:
        _print_lines(*str(result).split("\n"), *([f"  written: {', '.join(written)}"] if written else []))
    if result.status == "stopped":
        raise typer.Exit(1)


def _write_drive(result: Drive, **files: Path | None) -> list[str]:
    """Write what was asked for; the names of the files."""
    if files["csv"] is not None:
        result.to_csv(files["csv"])
    if files["plot"] is not None:
        _without_windows()
        import matplotlib.pyplot as plt

        from loopdyn.files import write_figure

        figure = result.plot()
        write_figure(files["plot"], figure, dpi=150)
        plt.close(figure)
    if files["html"] is not None:
        result.animate(files["html"])
    return [str(file) for file in files.values() if file is not None]


# ---------------------------------------------------------------------------------------------------------- run


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=MODEL_FILE)],
    until: Annotated[float, typer.Option("-t", "--time", help="Seconds to simulate.")] = 10.0,
    formulation: Annotated[
        str, typer.Option("-f", "--formulation", help="auto, graph, rcr, closure, momentum, ...")
    ] = "auto",
    integrator: Annotated[str, typer.Option("-i", "--integrator", help="auto, dop853, dp5, stiff, rk4, ...")] = "auto",
    step: Annotated[float | None, typer.Option("--step", help="Seconds of a step, for rk4, abm and steps.")] = None,
    rtol: Annotated[float, typer.Option("--rtol", help="Relative tolerance of a step.")] = 1e-8,
    atol: Annotated[float | None, typer.Option("--atol", help="Tolerance added to it, rad or sizes, per s.")] = None,
    drift: Annotated[str, typer.Option("--drift", help="projection, velocity, baumgarte or none.")] = "projection",
    every: Annotated[float | None, typer.Option("--every", help="Seconds between outputs.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write all results to this .nc file.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write results as a table to this file.")] = None,
    xlsx: Annotated[Path | None, typer.Option("--xlsx", help="Write the summary of loads as a workbook.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write plots: .png, .svg, .pdf (with reactions).")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that shows the motion.")] = None,
    checkpoint: Annotated[Path | None, typer.Option("--checkpoint", help="Folder to resume a killed run from.")] = None,
    table: Annotated[
        Path | None, typer.Option("--variants", help="Table of parameters, .csv: one run per line, side by side.")
    ] = None,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Simulate a mechanism from the start of its model.

    Closes the loops, integrates the motion with a progress bar, and prints a
    closing table: where it ended, steps, time, the error of the energy balance,
    the largest open residual, events and warnings. Ctrl-C keeps what was
    computed, with the exit code 130. The exit code is 1 if the model is wrong or
    the run fails; what was computed until then is written all the same.

    With --variants every line of the table is run with its values of parameters;
    one that fails says why and does not stop the others. --html then writes a
    report with all of them, --csv their peak loads. Ctrl-C stops them all; --csv
    gets those that were begun.

    Example: loopdyn run four_bar.yaml -t 5 -o run.nc
    """
    from loopdyn.analysis.assembly import assemble
    from loopdyn.errors import LoopdynError
    from loopdyn.run.simulate import output_times, simulate

    command = f"loopdyn run {file}"
    stepping = _check_options(formulation, integrator, step, drift, (rtol, atol), until, every)
    pictures, pages = (".png", ".svg", ".pdf"), (".html", ".gif", ".mp4", ".png")
    _check_names(output=(output, (".nc", ".h5")), csv=(csv, ()), xlsx=(xlsx, (".xlsx",)), plot=(plot, pictures),
                 html=(html, pages))  # fmt: skip
    if table is not None:
        if any(x is not None for x in (output, xlsx, plot, checkpoint)):
            raise typer.BadParameter("only --csv and --html go with a table of variants.", param_hint="--variants")
        options = {"formulation": formulation, "integrator": stepping, "rtol": rtol, "atol": atol, "drift": drift}
        tolerances = angle_tolerance, length_tolerance
        _run_variants(file, changed, table, until, every, csv, html, as_json, tolerances, options)
        return
    try:
        system = _load(file, changed).compile()
    except LoopdynError as error:
        _fail(error, command)
    try:
        with _noted_warnings() as notes:
            state = assemble(system, tolerance=_tolerance(system.mechanism, angle_tolerance, length_tolerance))
            result = simulate(
                system,
                state,
                (state.t, state.t + until),
                t_eval=None if every is None else output_times(state.t, state.t + until, every),
                formulation=formulation,
                integrator=stepping,
                rtol=rtol,
                atol=atol,
                drift=drift,  # type: ignore[arg-type]
                progress=not as_json,
                checkpoint=checkpoint,
            )
        written = _write(result, output=output, csv=csv, xlsx=xlsx, plot=plot, html=html)
    except LoopdynError as error:
        _stop(str(error), command)
    report = _report(result)
    report["warnings"] += notes
    if as_json:
        typer.echo(json.dumps(_plain(report | {"written": written}), indent=2))
    else:
        _show_report(report, state.note, written)
    if result.status == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if result.status == "failed":
        raise typer.Exit(1)


@contextmanager
def _noted_warnings() -> Iterator[list[str]]:
    """Collect the texts of loopdyn's warnings for JSON; they are shown as notes as well."""
    notes: list[str] = []
    with warnings.catch_warnings():
        shown_by_python = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, LoopdynWarning):
                notes.append(str(message))
            shown_by_python(message, category, *place, **more)

        warnings.showwarning = show
        warnings.simplefilter("always", LoopdynWarning)
        yield notes


def _run_variants(
    file: Path,
    changed: list[str] | None,
    table: Path,
    until: float,
    every: float | None,
    csv: Path | None,
    html: Path | None,
    as_json: bool,
    tolerances: tuple[float | None, float | None],
    options: dict[str, Any],
) -> None:
    """Run all variants of a table, print and write what they came to; exit code 1 if one failed."""
    from loopdyn.errors import LoopdynError
    from loopdyn.output.report import report as write
    from loopdyn.studies.variants import variants

    command = f"loopdyn run {file} --variants {table}"
    if html is not None and html.suffix != ".html":
        raise typer.BadParameter("a report of variants is a page, .html.", param_hint="--html")
    try:
        mechanism = _load(file, changed)
        options = options | {"tolerance": _tolerance(mechanism, *tolerances)}
        with _noted_warnings() as notes:
            found = variants(mechanism, table, until, every=every, progress=not as_json, **options)
            if csv is not None:
                found.to_csv(csv)
            if html is not None and not found.stopped:
                _without_windows()
                write(mechanism, html, time=until, variants=found, progress=False, **options)
    except LoopdynError as error:
        _stop(str(error), command, "the model or the table")
    written = [str(f) for f in (csv, None if found.stopped else html) if f is not None]
    if as_json:
        rows = found.table().to_dict(orient="index")
        data = {"name": found.title, "variants": rows, "stopped": found.stopped, "warnings": notes, "written": written}
        typer.echo(json.dumps(_plain(data), indent=2))
    else:
        _print_lines(*str(found).split("\n"), *([f"written: {', '.join(written)}"] if written else []))
    if found.stopped:
        raise typer.Exit(INTERRUPTED)
    if found.failed:
        raise typer.Exit(1)


def _without_windows() -> None:
    """Draw into files only."""
    import matplotlib

    matplotlib.use("Agg")


def _check_options(
    formulation: str,
    integrator: str,
    step: float | None,
    drift: str,
    tolerances: tuple[float, float | None],
    until: float,
    every: float | None,
) -> Integrator:
    """Refuse wrong options before a model is read; the integrator."""
    from loopdyn.errors import LoopdynError
    from loopdyn.formulations.registry import DEFAULT, formulation_class
    from loopdyn.integrators.base import named
    from loopdyn.run.simulate import check_settings, output_times

    try:
        check_settings(*tolerances, drift)
        output_times(0.0, until, until if every is None else every)
        if formulation != DEFAULT:
            formulation_class(formulation)
        return named(integrator, step)
    except LoopdynError as error:
        raise typer.BadParameter(str(error)) from None


def _check_names(**files: tuple[Path | None, tuple[str, ...]]) -> None:
    """Refuse files that cannot be written, before anything is computed."""
    for option, (file, endings) in files.items():
        if file is None:
            continue
        if endings and file.suffix not in endings:
            raise typer.BadParameter(f"'{file}' must end in {' or '.join(endings)}.", param_hint=f"--{option}")
        if not file.parent.is_dir():
            raise typer.BadParameter(f"there is no folder '{file.parent}'. Create it first.", param_hint=f"--{option}")
        if file.is_dir():
            raise typer.BadParameter(f"'{file}' is a folder. Give the name of a file.", param_hint=f"--{option}")


def _write(result: Run, **files: Path | None) -> list[str]:
    """Write what was asked for; the names of the files."""
    if files["plot"] is not None:
        _without_windows()
    writers: dict[str, Callable[[Path], object]] = {
        "output": result.save,
        "csv": result.to_csv,
        "xlsx": result.to_excel,
        "plot": lambda file: result.plot.save(file),
        "html": result.animate,
    }
    for name, file in files.items():
        if file is not None:
            writers[name](file)
    return [str(file) for file in files.values() if file is not None]


def _report(result: Run) -> dict[str, Any]:
    """What a run came to."""
    p, seconds = result.path, result.statistics.seconds
    reached = float(p.t[-1]) if len(p) else 0.0
    return {
        "name": result.system.name,
        "status": result.status,
        "message": result.message,
        "reached": reached,
        "outputs": len(p),
        **{k: v for k, v in asdict(result.statistics).items() if k != "seconds"},
        "seconds": seconds,
        "energy_error": result.energy_error,
        "largest_residual": result.largest_residual,
        "decided": result.decided,
        "events": [{"t": e.t, "name": e.name, "energy_loss": e.energy_loss} for e in result.events],
        "passages": [p.as_data() for p in result.passages],
        "warnings": list(result.system.warnings),
        "settings": dict(result.settings),
        "final": {
            "q": dict(zip(result.system.coordinates, p.q[-1].tolist() if len(p) else [], strict=False)),
            "v": dict(zip(result.system.speeds, p.v[-1].tolist() if len(p) else [], strict=False)),
        },
    }


def _show_report(report: dict[str, Any], note: str, written: list[str]) -> None:
    settings = report["settings"]
    added = "" if settings["atol"] is None else f", atol {settings['atol']:g}"
    compiled = "compiled" if settings["compiled"] else "driven from Python"
    lines = [
        ("status", f"{report['status']}: {report['message']}"),
        ("start", note),
        ("formulation", f"{settings['formulation']}, {compiled}"),
        (
            "integrator",
            f"{settings['integrator']}, rtol {settings['rtol']:g}{added}, drift control: {settings['drift']}",
        ),
        ("steps", f"{report['steps']} ({report['rejected']} rejected), {report['evaluations']} evaluations"),
        ("time", f"{report['seconds']:.2f} s for {report['reached']:g} s"),
        ("outputs", str(report["outputs"])),
        ("energy error", f"{report['energy_error']:.1e} of the largest energy that moved"),
        ("largest residual", f"{report['largest_residual']:.1e} rad or sizes of the mechanism"),
    ]
    lines += [("decided", report["decided"])] if report["decided"] else []
    events = report["events"]
    lines += [("event", f"at t = {e['t']:.9g} s: {e['name']}") for e in events[:SHOWN]]
    lines += [("", f"... and {len(events) - SHOWN} more events: --json shows all")] if len(events) > SHOWN else []
    lines += [("written", ", ".join(written))] if written else []
    _print_lines(report["name"], *(f"{what:<18}{text}" for what, text in lines))


def _fail(error: LoopdynError, command: str) -> NoReturn:
    """All problems, one a line, then what to do next."""
    from loopdyn.errors import ModelError

    problems = error.problems if isinstance(error, ModelError) else (error,)
    for problem in problems:
        typer.echo(_printable(str(problem)), err=True)
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    typer.echo(f"{count}. Correct the model, then run again: {_printable(command)}", err=True)
    raise typer.Exit(1)


def _printable(text: str) -> str:
    """One line without control characters: names come from files, and a terminal obeys what it is sent."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _as_data(system: System) -> dict[str, Any]:
    topology = system.topology
    return {
        "name": system.name,
        "units": system.mechanism.units.model_dump(),
        "bodies": list(topology.order),
        "joints": {e.name: e.type for e in topology.edges},
        "floating": list(topology.free_roots),
        "cut_joints": list(topology.cuts),
        "loops": [
            {"bodies": list(p.bodies), "joints": list(p.joints), "base": p.base, "closing": p.closing}
            for p in topology.loops
        ],
        "forces": list(system.forces),
        "nb": system.nb,
        "nq": system.nq,
        "nv": system.nv,
        "nc": system.nc,
        "coordinates": list(system.coordinates),
        "speeds": list(system.speeds),
        "constraint_rows": list(system.constraint_rows),
        "warnings": list(system.warnings),
    }


def _show(system: System) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True, markup=False)
    title, *tree = str(system.topology).split("\n")
    console.print(_printable(title), style="bold")
    for line in tree:
        console.print(_printable(line))
    console.print()
    for what, value in _sizes(system):
        console.print(f"{what:<18}{_printable(value)}")


def _masses(system: System) -> str:
    """Masses of the bodies, and their sum."""
    from loopdyn.engine import records as rec

    body = system.model.body[system.n_bases :, rec.MASS]
    names = system.bodies[system.n_bases :]
    listed = [f"{name} {mass:.4g}" for name, mass in zip(names[:SHOWN], body, strict=False)]
    more = ["..."] if len(names) > SHOWN else []
    return f"{body.sum():.4g} in all: {', '.join([*listed, *more])}"


def _sizes(system: System) -> list[tuple[str, str]]:
    topology, units = system.topology, system.mechanism.units.model_dump()
    return [
        ("bodies", str(system.nb)),
        ("masses in kg", _masses(system)),
        ("joints", f"{len(topology.edges)}, of which {len(topology.cuts)} cut"),
        ("loops", str(len(topology.loops))),
        ("coordinates", f"nq = {system.nq}"),
        ("speeds", f"nv = {system.nv}"),
        ("constraint rows", f"nc = {system.nc}"),
        ("forces", ", ".join(system.forces[:12]) + (", ..." if len(system.forces) > 12 else "") or "none"),
        ("units of the file", ", ".join(f"{kind} {unit}" for kind, unit in units.items())),
    ]


# ------------------------------------------------------------------------------------------------------ convert


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help=".yaml, .xml (MJCF), .urdf or .sdf.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help=".yaml, .xml (MJCF) or .urdf (with a sidecar file).")],
    loops: Annotated[
        Path | None, typer.Option("--loops", help="Sidecar of a URDF; NAME.loops.yaml if it is there.")
    ] = None,
    keyframe: Annotated[str | None, typer.Option("--keyframe", help="Keyframe of MJCF to start from.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Model of an SDF that has several.")] = None,
    leave_out: Annotated[bool, typer.Option("--leave-out", help="Leave out what OUT cannot hold.")] = False,
    mend: Annotated[bool, typer.Option("--mend", help="Replace impossible inertias of URDF and SDF.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Convert a model between loopdyn, MuJoCo (MJCF), URDF and SDF, loops included.

    Prints what was carried over, changed and left out. What OUT cannot hold is
    refused by name, with the exit code 1, unless --leave-out is given. A URDF is
    written with NAME.loops.yaml beside it, which holds its loops and whatever
    else URDF cannot say.

    Example: loopdyn convert robot.xml robot.yaml
    """
    from loopdyn.errors import LoopdynError
    from loopdyn.interchange.convert import convert as run

    try:
        reports = run(source, target, loops=loops, keyframe=keyframe, model=model, leave_out=leave_out, mend=mend)
    except LoopdynError as error:
        _fail(error, f"loopdyn convert {source} {target}")
    if as_json:
        typer.echo(json.dumps([asdict(report) for report in reports], indent=2))
        return
    for report in reports:
        _print_lines(*str(report).split("\n"))
    _print_lines(f"written           {target}")


# ------------------------------------------------------------------------------------------ statics, motor loads


@app.command()
def equilibrium(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=MODEL_FILE)],
    search: Annotated[
        list[str] | None, typer.Option("--search", metavar="A=FROM:TO", help="Range of a coordinate, file's units.")
    ] = None,
    at: Annotated[float, typer.Option("-t", "--time", help="Seconds at which drivers and motors are held.")] = 0.0,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (SI units) instead of text.")] = False,
) -> None:
    """Find where a mechanism stands still, and whether it stays there.

    Without --search it is let go at the start of the model and followed downhill.
    With --search all equilibria over a range of a coordinate are found, one line
    each: stable, unstable or neutral. Coordinates are printed in the units of the
    file, loads and stiffnesses in N and m. The exit code is 1 if the model is
    wrong, if nothing is found or if a driver or base moves at that time.

    Example: loopdyn equilibrium toggle.yaml --search A=-60:60
    """
    from loopdyn.analysis.equilibrium import equilibrium as find
    from loopdyn.analysis.equilibrium import units_of
    from loopdyn.errors import LoopdynError

    command = f"loopdyn equilibrium {file}"
    ranges = {label: _range(text) for label, text in _assignments("--search", search).items()}
    try:
        system = _load(file, changed).compile()
    except LoopdynError as error:
        _fail(error, command)
    _check_labels(system, "--search", ranges)
    given = {}
    for label, (low, high) in ranges.items():
        unit = units_of(system, label)[0]
        given[label] = (low * unit, high * unit)
    about: dict[str, Any] = {"name": system.name}
    try:
        begin = _start(system, angle_tolerance, length_tolerance, at)
        if given:
            several = find(system, begin, search=given, t=at)
            about |= {"complete": several.complete, "note": several.note}
            found, text = list(several), str(several)
        else:
            one = find(system, begin, t=at)
            found, text = [one], f"{one}\n\n{one.reactions}"
    except LoopdynError as error:
        _stop(str(error), command, "the model or the options")
    if as_json:
        typer.echo(json.dumps(_plain(about | {"equilibria": [e.as_data() for e in found]}), indent=2))
    else:
        _print_lines(*text.split("\n"))


@app.command()
def inverse(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=MODEL_FILE)],
    motion: Annotated[
        list[str] | None, typer.Option("--motion", metavar="A=FORMULA", help="Coordinate as a formula of t.")
    ] = None,
    until: Annotated[float, typer.Option("-t", "--time", help="Seconds of the motion.")] = 1.0,
    every: Annotated[float | None, typer.Option("--every", help="Seconds between times; 200 times without.")] = None,
    motors: Annotated[list[str] | None, typer.Option("--motor", metavar="A", help="Coordinate with a motor.")] = None,
    weights: Annotated[
        list[str] | None, typer.Option("--weight", metavar="A=1", help="Of load^2, for redundant motors.")
    ] = None,
    preload: Annotated[
        list[str] | None, typer.Option("--preload", metavar="A=5", help="N m or N, for redundant motors.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write loads, speeds and powers as a table.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write load over speed: .png, .svg, .pdf.")] = None,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Find what motors must give for a motion, and what the bearings then carry.

    The motion is given by formulas in the units of the file, one --motion for each
    freedom, or by the drivers of the model. Motors are the coordinates named by
    --motor, else those of the motion with a motor or driver in the model, else
    all that have one, else those of the motion; what the model has there is left
    out. Printed in SI units. The exit code is 1 if the model is wrong or the motion
    is not possible.

    Example: loopdyn inverse slider_crank.yaml --motion "A=360*t" -t 1
    """
    from loopdyn.analysis.inverse_dynamics import inverse_dynamics
    from loopdyn.errors import LoopdynError
    from loopdyn.run.simulate import output_times

    command = f"loopdyn inverse {file}"
    laws = _assignments("--motion", motion)
    shares, loads = _numbers("--weight", weights), _numbers("--preload", preload)
    _check_names(csv=(csv, ()), plot=(plot, (".png", ".svg", ".pdf")))
    try:
        times = output_times(0.0, until, until / SAMPLES if every is None else every)
    except LoopdynError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        system = _load(file, changed).compile()
    except LoopdynError as error:
        _fail(error, command)
    for option, labels in (("--motion", laws), ("--motor", motors or []), ("--weight", shares), ("--preload", loads)):
        _check_labels(system, option, labels)
    try:
        begin = _start(system, angle_tolerance, length_tolerance)
        found = inverse_dynamics(
            system, laws, times, motors=motors, weights=shares or None, preload=loads or None, start=begin
        )
        bearings = found.bearings()
    except LoopdynError as error:
        _stop(str(error), command, "the model or the options")
    _write_loads(found, csv, plot, command)
    written = [str(name) for name in (csv, plot) if name is not None]
    if as_json:
        data = {
            "name": system.name,
            "verdict": found.verdict,
            "rule": found.rule,
            "replaced": list(found.replaced),
            "left_open": found.left_open,
            "motors": found.table().to_dict(orient="index"),
            "bearings": bearings.table().to_dict(orient="index"),
            "written": written,
        }
        typer.echo(json.dumps(_plain(data), indent=2))
        return
    _print_lines(*str(found).split("\n"), "", *str(bearings).split("\n"))
    if written:
        _print_lines("", f"written           {', '.join(written)}")


def _write_loads(found: InverseDynamics, csv: Path | None, plot: Path | None, command: str) -> None:
    """Write what was asked for."""
    from loopdyn.errors import LoopdynError
    from loopdyn.files import write_figure

    try:
        if csv is not None:
            found.to_csv(csv)
        if plot is not None:
            _without_windows()
            write_figure(plot, found.plot())
    except LoopdynError as error:
        _stop(str(error), command, "the options")


def _assignments(option: str, given: list[str] | None) -> dict[str, str]:
    """What was given as NAME=TEXT."""
    found: dict[str, str] = {}
    for text in given or []:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise typer.BadParameter(f"'{text}' is not of the form NAME=VALUE.", param_hint=option)
        if name in found:
            raise typer.BadParameter(f"'{name}' is given twice.", param_hint=option)
        found[name] = value
    return found


def _numbers(option: str, given: list[str] | None) -> dict[str, float]:
    found = {}
    for name, text in _assignments(option, given).items():
        try:
            found[name] = float(text)
        except ValueError:
            raise typer.BadParameter(f"'{text}' of '{name}' is not a number.", param_hint=option) from None
    return found


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(x) for x in text.split(":"))
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a range. Write FROM:TO, as 0:360.", param_hint="--search") from None
    if not (isfinite(low) and isfinite(high) and low < high):
        raise typer.BadParameter(f"the range '{text}' does not ascend.", param_hint="--search")
    return low, high


def _check_labels(system: System, option: str, labels: Iterable[str]) -> None:
    """Refuse names of coordinates that the model does not have."""
    from loopdyn.quantities.wording import nearest

    both = [j.spec.labels(j.name) for j in system.joints.values()]
    known = [label for coordinates, speeds in both for label in (*coordinates, *speeds)]
    for label in labels:
        if label not in known:
            hint = nearest(label, dict.fromkeys(known))
            raise typer.BadParameter(f"there is no joint coordinate '{label}'. {hint}", param_hint=option)


# ------------------------------------------------------------------------------------------------ other commands


@app.command()
def report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=MODEL_FILE)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page to write, .html.")] = Path("report.html"),
    until: Annotated[float, typer.Option("-t", "--time", help="Seconds to simulate.")] = 1.0,
    turn: Annotated[
        str | None, typer.Option("--turn", help="Coordinate to turn for the drive curves; that of a driver or motor.")
    ] = None,
    start: Annotated[float | None, typer.Option("--from", help="Where it begins, in the units of the file.")] = None,
    stop: Annotated[float | None, typer.Option("--to", help="Where it ends, in the units of the file.")] = None,
    table: Annotated[Path | None, typer.Option("--variants", help="Table of parameters, .csv, to run beside.")] = None,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
) -> None:
    """Write one page about a mechanism, to read and to keep.

    Picture, mobility and redundancy, drive curves over a turn of the input, a
    run, loads of all bearings, shaking, the error of the energy, settings and
    versions; with --variants, all of its lines side by side. The page needs no
    other file.

    Example: loopdyn report four_bar.yaml -o four_bar.html -t 2 --turn A
    """
    from loopdyn.errors import LoopdynError
    from loopdyn.output.report import report as write
    from loopdyn.studies.variants import variants

    command = f"loopdyn report {file}"
    _check_names(output=(output, (".html",)))
    if not (isfinite(until) and until > 0.0):
        raise typer.BadParameter(f"{until} is not a positive number of seconds.", param_hint="--time")
    if (start is None) != (stop is None):
        raise typer.BadParameter("give both ends of the range, or none.", param_hint="--from, --to")
    try:
        mechanism = _load(file, changed)
        tolerance = _tolerance(mechanism, angle_tolerance, length_tolerance)
        found = None if table is None else variants(mechanism, table, until, tolerance=tolerance)
        _without_windows()
        over = None if start is None or stop is None else (start, stop)
        write(mechanism, output, time=until, turn=turn, over=over, variants=found, tolerance=tolerance)
    except LoopdynError as error:
        _stop(str(error), command)
    typer.echo(f"written: {output}")
    if found is not None and found.stopped:
        typer.echo(found.stopped, err=True)
        raise typer.Exit(INTERRUPTED)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the model file, for editors and other programs.

    Example: loopdyn schema > loopdyn.schema.json
    """
    from loopdyn.io import schema as make

    typer.echo(json.dumps(make(), indent=2))


@app.command()
def demo(
    page: Annotated[Path, typer.Option("--html", help="Where to write the page.")] = Path("loopdyn_demo.html"),
) -> None:
    """Show a four-bar and a 6-UPS platform by every formulation, and write a page on which both move.

    Needs no arguments.
    """
    from loopdyn.app.demo import main as run
    from loopdyn.errors import LoopdynError

    _check_names(html=(page, (".html",)))
    try:
        run(page)
    except LoopdynError as error:
        _stop(str(error), "loopdyn demo", "the options")


@app.command()
def studio(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Model file to open, ending in .yaml.")] = None,
    port: Annotated[int, typer.Option("--port", help="Of 127.0.0.1; 0 takes a free one.", min=0, max=65535)] = 8765,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    r"""Open a local page to edit a mechanism, drag its input, run it and look at the run.

    Served to this machine only, until Ctrl-C. Files are read and written in the
    present folder and below, nowhere else. Without a file it begins with a
    four-bar. Needs the extra: pip install 'loopdyn\[studio]'.

    Example: loopdyn studio four_bar.yaml
    """
    from loopdyn.app.studio import open_studio
    from loopdyn.errors import LoopdynError

    try:
        open_studio(file, port=port, browser=browser)
    except LoopdynError as error:
        for line in str(error).split("\n"):
            typer.echo(_printable(line), err=True)
        raise typer.Exit(1) from None


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="A01 ... A05, ladder-10, all.")] = None,
    formulations: Annotated[
        list[str] | None, typer.Option("-f", "--formulation", help="One or more; auto by default.")
    ] = None,
    rtol: Annotated[float, typer.Option("--rtol", help="Relative tolerance of a step.")] = 1e-8,
    peers: Annotated[bool, typer.Option("--peers", help="Run MuJoCo beside, where it is installed.")] = False,
    step: Annotated[float, typer.Option("--step", help="Seconds of a step of peers.")] = 1e-3,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw errors over computing time: .png, .svg, .pdf.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Run benchmark problems whose solutions are known: error, energy error, steps, time.

    The problems of the IFToMM library (A01 pendulum, A02 windows that fold flat,
    A03 Andrews' squeezer, A04 Bricard, A05 flyball governor) and ladders. Without
    a name all of them are run, which takes some minutes.

    Example: loopdyn bench A02 A04 -f auto -f momentum
    """
    from rich.console import Console
    from rich.table import Table

    from loopdyn.app import bench as problems
    from loopdyn.errors import LoopdynError
    from loopdyn.run.simulate import check_settings

    _check_names(plot=(plot, (".png", ".svg", ".pdf")))
    if not step > 0.0:
        raise typer.BadParameter(f"--step is {step}. Give a positive number of seconds.")
    results, failed = [], False
    try:
        check_settings(rtol, None, "projection")
        chosen = problems.chosen(names or [])
        for name in chosen:
            for formulation in formulations or ["auto"]:
                results.append(problems.run_problem(name, formulation, rtol))
                failed = failed or results[-1].status != "finished"
                if not as_json:
                    typer.echo(f"{name} by {formulation}: {results[-1].status}", err=True)
            if peers:
                try:
                    results.append(problems.run_by_mujoco(name, step))
                except LoopdynError as error:  # not installed, or MJCF cannot hold the model: the others go on
                    typer.echo(_printable(f"{name} by MuJoCo is left out: {error}"), err=True)
    except LoopdynError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        if plot is not None:
            problems.plot(results, str(plot))
    except LoopdynError as error:
        _stop(str(error), "loopdyn bench", "the options")
    if as_json:
        typer.echo(json.dumps(problems.as_data(results), indent=2))
    else:
        heads, *rows = problems.table(results)
        shown = Table(*heads)
        for row in rows:
            shown.add_row(*row)
        Console(width=None if Console().is_terminal else 160).print(shown)
    if failed:
        raise typer.Exit(1)


# ------------------------------------------------------------------------------------------------------ kernels


@app.command()
def warm(
    everything: Annotated[
        bool, typer.Option("--all", help="All formulations and analyses, not only the default way.")
    ] = False,
) -> None:
    """Compile kernels in advance, so that no later call waits for them.

    Without --all those of assemble, simulate and reactions by the default
    formulation. Kernels are kept in the user's cache folder and serve every
    environment and checkout of the same sources.

    Example: loopdyn warm --all
    """
    from loopdyn.app.warm import main as compile_kernels

    compile_kernels(everything)


@app.command()
def doctor() -> None:
    """Show versions, where compiled kernels come from, and what is missing.

    Example: loopdyn doctor
    """
    from loopdyn.app.doctor import report

    rows = report()
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        typer.echo(_printable(f"{name:{width}}  {value}"))
