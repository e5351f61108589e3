"""What a new user does first: README, tutorial, gallery, demonstration, studio; what they compile is counted.

    python tools/first_steps.py [readme tutorial gallery demo studio]

Names of functions of loopdyn that had to be compiled are printed, also those of commands that are run. Pages are
written to a temporary folder. `tools/kernels.py` fills a pack in this way, and a test
checks that it leaves nothing out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from numba.core import event

ROOT = Path(__file__).parents[1]
RECORD = "LOOPDYN_COMPILED"  # environment variable: file that each process appends the names to


class Compiled(event.Listener):
    """Appends the names of functions that are compiled to a file."""

    def on_start(self, event: Any) -> None:
        """Take the name of a function that no cache has."""
        with open(os.environ[RECORD], "a", encoding="utf-8") as file:
            file.write(event.data["dispatcher"].py_func.__qualname__ + "\n")

    def on_end(self, event: Any) -> None:
        """Nothing to note."""


def readme() -> None:
    """First example of README."""
    text = (ROOT / "README.md").read_text("utf-8")
    exec(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)[0], {"__name__": "__main__"})


def tutorial() -> None:
    """All examples and commands of the tutorial."""
    sys.path.insert(0, str(ROOT / "docs"))
    from follow_tutorial import follow

    follow(ROOT / "docs" / "tutorial.md", (sys.executable, __file__, "command"))


def gallery() -> None:
    """All animations of the gallery."""
    sys.path.insert(0, str(ROOT / "docs" / "gallery"))
    from build import EXHIBITS, animation

    for name in EXHIBITS:
        animation(name, Path(f"{name}.html"))


def demo() -> None:
    """The demonstration."""
    from loopdyn.app.demo import main

    main()


def studio() -> None:
    """Check, move and run a model in the studio."""
    from loopdyn.app.studio.work import Desk

    folder, name = ROOT / "examples" / "mechanisms", "four_bar.yaml"
    text = (folder / name).read_text("utf-8")
    desk = Desk(str(folder))
    first = desk.check(text, name).inputs[0]
    desk.move(first.label, (first.low + first.high) / 2)
    desk.run(text, name, "auto", 0.5, None, lambda fraction: False)


def command() -> None:
    """A command of loopdyn, with the arguments that follow."""
    from loopdyn.app.cli import main

    sys.argv = ["loopdyn", *sys.argv[2:]]
    main()


STEPS = {step.__name__: step for step in (readme, tutorial, gallery, demo, studio)}


def main() -> None:
    """Take the named steps, or all."""
    if sys.argv[1:2] == ["command"]:
        event.register("numba:compile", Compiled())
        return command()
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "compiled.txt"
        record.touch()
        for name in sys.argv[1:] or STEPS:  # each in a process of its own, as a user starts it
            script = f"import first_steps; first_steps.take({name!r})"
            environment = os.environ | {RECORD: str(record), "MPLBACKEND": "Agg"}
            environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
            subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment, check=True, stdout=sys.stderr)
        print("\n".join(sorted(set(record.read_text("utf-8").split()))))


def take(name: str) -> None:
    """Take one step in this process."""
    event.register("numba:compile", Compiled())
    STEPS[name]()


if __name__ == "__main__":
    main()
