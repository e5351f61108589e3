"""``loopdyn compare``: every formulation on one model."""

from __future__ import annotations

from loopdyn.app.cli.answers import exit_on_error, print_json, print_text
from loopdyn.app.cli.models import load_system, tolerated_start
from loopdyn.app.cli.options import AngleTolerance, AsJson, LengthTolerance, ModelFile, Parameters


def compare(
    file: ModelFile,
    angle_tolerance: AngleTolerance = None,
    length_tolerance: LengthTolerance = None,
    changed: Parameters = None,
    as_json: AsJson = False,
) -> None:
    """Run every formulation on one model and print their results side by side.

    Closes the loops at the start of the model, then prints accelerations and
    reactions of all formulations, their largest difference, and the time of one
    evaluation. If the model is wrong or its loops cannot be closed, a message says
    so and the exit code is 1.

    Example: loopdyn compare four_bar.yaml
    """
    from loopdyn.analysis.comparing import compare as run_all

    command = f"loopdyn compare {file}"
    system = load_system(file, changed, command)
    with exit_on_error(command):
        result = run_all(system, tolerated_start(system, angle_tolerance, length_tolerance))
    if as_json:
        print_json(result.as_data())
    else:
        print_text(str(result))
