"""Files that installable packages ship."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest


def cassie_file() -> Path:
    """The SDF of the biped Cassie in the package `example-robot-data`."""
    try:
        data = distribution("example-robot-data")
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return next(Path(str(data.locate_file(f))) for f in data.files or () if f.name == "cassie_v2.sdf")
