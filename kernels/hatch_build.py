"""Version, requirements and tag of the wheel of kernels, from the manifest that `tools/kernels.py` has written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

FACTS = json.loads((Path(__file__).parent / "loopdyn_kernels" / "manifest.json").read_text("utf-8"))
VERSION = re.fullmatch(r"cpython-3(\d+)", FACTS["python"]).group(1)


class Metadata(MetadataHookInterface):
    """A pack is for one version of loopdyn, of Numba and of Python."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what depends on the manifest."""
        metadata["version"] = FACTS["loopdyn"]
        metadata["dependencies"] = [f"loopdyn=={FACTS['loopdyn']}", f"numba=={FACTS['numba']}"]
        metadata["requires-python"] = f"==3.{VERSION}.*"


class Tag(BuildHookInterface):
    """The wheel is for one Python and one platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Set the tag."""
        build_data["pure_python"] = False
        build_data["tag"] = f"cp3{VERSION}-none-{FACTS['wheel']}"
