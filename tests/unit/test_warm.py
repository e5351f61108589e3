"""What is compiled in advance is all that the first steps of a user need."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import pytest

ROOT = Path(__file__).parents[2]
LISTEN = """
from numba.core import event
class Compiled(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass
event.register("numba:compile", Compiled())
"""
TOLD = """
print("compiled:", Compiled.names)
"""


def readme():
    """The first Python example of README."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[0]


@pytest.mark.slow
@pytest.mark.timeout(1200)  # everything is compiled
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_demonstration_and_readme_compile_nothing_after_everything_was_compiled_in_advance(tmp_path):
    environment = os.environ | {"LOOPDYN_CACHE_DIR": str(tmp_path / "cache")}

    def run(*command):
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(sys.executable, "-m", "loopdyn", "warm", "--all")
    for code in ("from loopdyn.app.demo import main\nmain()", readme()):
        told = run(sys.executable, "-c", LISTEN + code + TOLD)
        assert told.splitlines()[-1] == "compiled: []"
