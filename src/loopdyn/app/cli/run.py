"""``loopdyn run``: a simulation, or one for each line of a table of variants."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loopdyn.app.cli.answers import (
    INTERRUPTED,
    collected_warnings,
    exit_on_error,
    print_json,
    print_lines,
    print_text,
    refuse_options,
)
from loopdyn.app.cli.conversion import final_state, pair_of_tolerances
from loopdyn.app.cli.models import load_mechanism, load_system
from loopdyn.app.cli.options import (
    PAGES,
    PICTURES,
    AngleTolerance,
    AsJson,
    DriftName,
    Duration,
    FormulationName,
    IntegratorName,
    LengthTolerance,
    ModelFile,
    Parameters,
    check_names,
    draw_into_files,
    write_files,
)

if TYPE_CHECKING:
    from loopdyn.results.run import Run

SHOWN = 12  # most events listed in the closing table of a run


def run(
    file: ModelFile,
    until: Duration = 10.0,
    formulation: Annotated[FormulationName, typer.Option("-f", "--formulation", help="Equations of motion.")] = "auto",
    integrator: Annotated[IntegratorName, typer.Option("-i", "--integrator", help="Method of integration.")] = "auto",
    step: Annotated[float | None, typer.Option("--step", help="Step size in s, for rk4, abm and steps.")] = None,
    rtol: Annotated[float, typer.Option("--rtol", help="Relative tolerance of a step.")] = 1e-8,
    atol: Annotated[float | None, typer.Option("--atol", help="Absolute tolerance in natural units.")] = None,
    drift: Annotated[DriftName, typer.Option("--drift", help="How constraints are kept.")] = "projection",
    every: Annotated[float | None, typer.Option("--every", help="Seconds between outputs.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write all results to this .nc file.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write results as a table to this file.")] = None,
    xlsx: Annotated[Path | None, typer.Option("--xlsx", help="Write the summary of loads as a workbook.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write plots: .png, .svg, .pdf (with reactions).")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that shows the motion.")] = None,
    checkpoint: Annotated[Path | None, typer.Option("--checkpoint", help="Checkpoint to resume a killed run.")] = None,
    table: Annotated[
        Path | None, typer.Option("--variants", help="Table of parameters, .csv: one run per line, side by side.")
    ] = None,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Simulate a mechanism from the start of its model.

    Closes the loops, integrates the motion with a progress bar, and prints a
    closing table: how it ended, steps, time, the energy-balance error, the largest
    residual, events and warnings. Ctrl-C keeps the results so far, with the exit
    code 130. The exit code is 1 if the model is wrong or the run fails; results
    until then are written all the same. The last state in --json is in the units of
    the file, energies are in J.

    With --variants every line of the table is run with its values of parameters; a
    run that fails says why and does not stop the others. --html then writes a
    report with all of them, --csv their peak loads. Ctrl-C stops them all; --csv
    gets those that were started.

    Example: loopdyn run four_bar.yaml -t 5 -o run.nc
    """
    from loopdyn.analysis.assembly import assemble
    from loopdyn.run.simulate import output_times, simulate

    settings = _checked_settings(formulation, integrator, step, (rtol, atol), drift, until, every)
    check_names(output=(output, (".nc", ".h5")), csv=(csv, ()), xlsx=(xlsx, (".xlsx",)), plot=(plot, PICTURES),
                html=(html, PAGES))  # fmt: skip
    tolerances = angle_tolerance, length_tolerance
    if table is not None:
        if any(x is not None for x in (output, xlsx, plot, checkpoint)):
            raise typer.BadParameter("only --csv and --html work with a table of variants.", param_hint="--variants")
        _run_variants(file, changed, table, until, every, csv, html, as_json, tolerances, settings)
        return
    command = f"loopdyn run {file}"
    system = load_system(file, changed, command)
    with exit_on_error(command):
        with collected_warnings() as notes:
            state = assemble(system, tolerance=pair_of_tolerances(*tolerances))
            span = state.t, state.t + until
            times = None if every is None else output_times(*span, every)
            result = simulate(
                system, state, span, t_eval=times, progress=not as_json, checkpoint=checkpoint, **settings
            )
        written = _write(result, output, csv, xlsx, plot, html)
    report = _report(result, notes)
    if as_json:
        print_json(report | {"written": written})
    else:
        _show_report(report, state.note, written)
    _exit_by(result.status == "interrupted", result.status == "failed")


def _exit_by(interrupted: bool, failed: bool) -> None:
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if failed:
        raise typer.Exit(1)


def _checked_settings(
    formulation: str,
    integrator: str,
    step: float | None,
    tolerances: tuple[float, float | None],
    drift: str,
    until: float,
    every: float | None,
) -> dict[str, Any]:
    """Settings of `simulate`, checked before a model is read."""
    from loopdyn.formulations.registry import DEFAULT, formulation_class
    from loopdyn.integrators.registry import named
    from loopdyn.run.simulate import check_settings, output_times

    with refuse_options():
        check_settings(*tolerances, drift)
        output_times(0.0, until, until if every is None else every)
        if formulation != DEFAULT:
            formulation_class(formulation)
        stepping = named(integrator, step)
    rtol, atol = tolerances
    return {"formulation": formulation, "integrator": stepping, "rtol": rtol, "atol": atol, "drift": drift}


def _write(
    result: Run, output: Path | None, csv: Path | None, xlsx: Path | None, plot: Path | None, html: Path | None
) -> list[str]:
    """Write the requested files; return their names."""
    if plot is not None:
        draw_into_files()
    return write_files(
        (output, result.save),
        (csv, result.to_csv),
        (xlsx, result.to_excel),
        (plot, lambda name: result.plot.save(name)),
        (html, result.animate),
    )


def _report(result: Run, notes: list[str]) -> dict[str, Any]:
    """Report of a run as plain data."""
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
        "warnings": [*result.system.warnings, *notes],
        "settings": dict(result.settings),
        "units": result.system.units.model_dump(),
        "final": final_state(result),
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
        ("energy error", f"{report['energy_error']:.1e} (relative energy-balance error)"),
        ("largest residual", f"{report['largest_residual']:.1e} rad, or relative to the mechanism's size"),
    ]
    lines += [("decided", report["decided"])] if report["decided"] else []
    events = report["events"]
    lines += [("event", f"at t = {e['t']:.9g} s: {e['name']}") for e in events[:SHOWN]]
    lines += [("", f"... and {len(events) - SHOWN} more events: --json shows all")] if len(events) > SHOWN else []
    lines += [("written", ", ".join(written))] if written else []
    print_lines(report["name"], *(f"{what:<18}{text}" for what, text in lines))


# --------------------------------------------------------------------------------------------- a table of variants


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
    settings: dict[str, Any],
) -> None:
    """Run all variants of a table, print and write their results; exit code 1 if one failed."""
    from loopdyn.output.report import report as write
    from loopdyn.run.simulate import output_times
    from loopdyn.studies.variants import variants

    if html is not None and html.suffix != ".html":
        raise typer.BadParameter("a report of variants is a page, .html.", param_hint="--html")
    with exit_on_error(f"loopdyn run {file} --variants {table}", "the model or the table"):
        mechanism = load_mechanism(file, changed)
        settings = settings | {"tolerance": pair_of_tolerances(*tolerances)}
        times = None if every is None else output_times(0.0, until, every)
        with collected_warnings() as notes:
            found = variants(mechanism, table, (0.0, until), t_eval=times, progress=not as_json, **settings)
            if csv is not None:
                found.to_csv(csv)
            if html is not None and not found.stopped:
                draw_into_files()
                write(mechanism, html, t_span=(0.0, until), variants=found, progress=False, **settings)
    written = [str(f) for f in (csv, None if found.stopped else html) if f is not None]
    if as_json:
        rows = found.table().to_dict(orient="index")
        about = {"name": found.title, "variants": rows, "stopped": found.stopped}
        print_json(about | {"warnings": notes, "written": written})
    else:
        print_text(str(found))
        print_lines(*([f"written: {', '.join(written)}"] if written else []))
    _exit_by(bool(found.stopped), bool(found.failed))
