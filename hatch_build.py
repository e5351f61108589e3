"""Build step: brings three.js, which draws the page of a run, into the package (docs/decisions/0004).

Its bundle comes in the wheel of NiceGUI, downloaded from the package index without the packages that NiceGUI needs. The
file is checked, made a script that defines ``THREE``, and written next to the page, with its licence. Files that are
there and match are left: a source distribution and a second build download nothing.

    python hatch_build.py    # for a source tree that is used without being installed
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SOURCE = "nicegui==3.18.0"
BUNDLE = "nicegui/elements/scene/dist/index.js"  # three.js r180 and loaders, one file
SHA256 = "f55227d12dac0eb037cae13b1992091746fc017a275748e4a1bebd0f6244e7e5"
LICENCE = "nicegui-3.18.0.dist-info/licenses/LICENSE"
FOLDER = Path(__file__).parent / "src" / "loopdyn" / "output" / "viewer"
FIRST_LINE = f"// three.js r180 from {SOURCE}, sha256 {SHA256}\n"


def bring_three_js(folder: Path = FOLDER) -> None:
    """Write three.js and its licence, unless they are there."""
    script, licence = folder / "three.js", folder / "three.LICENSE"
    if licence.is_file() and script.is_file() and script.read_text("utf-8").startswith(FIRST_LINE):
        return
    with tempfile.TemporaryDirectory() as there:
        options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--dest", there)
        subprocess.run([sys.executable, "-m", "pip", "download", *options, SOURCE], check=True)
        with zipfile.ZipFile(next(Path(there).glob("*.whl"))) as wheel:
            bundle, terms = wheel.read(BUNDLE), wheel.read(LICENCE).decode()
    if hashlib.sha256(bundle).hexdigest() != SHA256:
        raise SystemExit(f"{BUNDLE} of {SOURCE} is not the file that was examined: its SHA-256 differs.")
    script.write_text(FIRST_LINE + as_script(bundle.decode()), "utf-8")
    licence.write_text(f"three.js: MIT License, Copyright 2010-2025 Three.js Authors\nNiceGUI: {terms}", "utf-8")


def as_script(module: str) -> str:
    """A script that defines ``THREE``, from a module that exports it: modules cannot be loaded from a local file."""
    body, exports = re.fullmatch(r"(.*)\bexport\s*\{([^}]*)\};?\s*(?://# sourceMappingURL.*)?", module, re.S).groups()
    name = re.search(r"(\w+) as THREE\b", exports).group(1)
    return f"(() => {{\n{body}\nwindow.THREE = {name};\n}})();\n"


if __name__ == "__main__":
    bring_three_js()
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class ThreeJs(BuildHookInterface):
        """Called by hatchling before a wheel, an editable installation or a source distribution is built."""

        def initialize(self, version: str, build_data: dict[str, object]) -> None:
            """Bring three.js in."""
            bring_three_js()
