"""A first user is told what takes so long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import loopdyn as ld

SCRIPT = """
import numpy as np
import loopdyn as ld
from loopdyn.tree import difference
system = ld.library.four_bar().compile()
difference(system, system.q_reference, system.q_reference)
print("done")
"""


def run(cache: Path) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    own = {"LOOPDYN_CACHE_DIR": str(cache), "PYTHONPATH": str(Path(ld.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT], env=inherited | own, capture_output=True, text=True, check=True
    )


def test_the_first_process_says_once_that_it_compiles_the_second_nothing(tmp_path):
    first, second = run(tmp_path), run(tmp_path)
    assert first.stdout == second.stdout == "done\n"
    assert first.stderr.count("compiling kernels") == 1
    assert second.stderr == ""
