"""``loopdyn schema``: the schema of the model file."""

from __future__ import annotations

import json

import typer


def schema() -> None:
    """Print the JSON Schema of the model file, for editors and other programs.

    Example: loopdyn schema > loopdyn.schema.json
    """
    from loopdyn.io.yaml import schema as make

    typer.echo(json.dumps(make(), indent=2))
