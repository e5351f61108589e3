"""Types of loopdyn are seen by a user's mypy, from outside of the package."""

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import loopdyn as ld

SCRIPT = """
import loopdyn as ld

system = ld.library.four_bar().compile()
reveal_type(system)
reveal_type(ld.assemble(system))
ld.assemble("four_bar.yaml")
"""


def test_mypy_sees_our_types_from_outside(tmp_path):
    """The package is marked by py.typed (PEP 561); mypy names results, and finds a wrong argument."""
    assert files(ld).joinpath("py.typed").is_file()
    (tmp_path / "user.py").write_text(SCRIPT)
    environment = os.environ | {"MYPYPATH": str(Path(ld.__file__).parents[1])}
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "user.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert 'user.py:5: note: Revealed type is "loopdyn.system.system.System"' in done.stdout
    assert 'user.py:6: note: Revealed type is "loopdyn.system.state.State"' in done.stdout
    assert 'user.py:7: error: Argument 1 to "assemble" has incompatible type "str"; expected "System"' in done.stdout
    assert "Found 1 error in 1 file" in done.stdout
