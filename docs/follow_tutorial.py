"""Follow the tutorial word for word: type its Python, run its commands, compare what is printed.

Run it in an empty folder, with the Python of an environment in which loopdyn is installed and nothing else needs to be:

    python .../docs/follow_tutorial.py
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from math import isclose
from pathlib import Path
from typing import Any

NUMBER = r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?"


def follow(page: Path, program: tuple[str, ...]) -> None:
    """Do what a page says, in the present folder, with `program` for loopdyn; an error or another output ends it."""
    session: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for language, block in re.findall(r"^```(python|text|sh)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block, str(page), "exec"), session)
            printed = out.getvalue()
        elif language == "text":
            compare(printed, block)
        else:
            for line in block.splitlines():
                name, *arguments = line.split()
                if name != "loopdyn":
                    raise SystemExit(f"The tutorial runs '{name}', which is not loopdyn.")
                subprocess.run([*program, *arguments], check=True, stdout=subprocess.DEVNULL)


def compare(printed: str, shown: str) -> None:
    """Whether the same was printed: words to the letter, numbers to four digits, rounding aside."""
    words = [re.sub(NUMBER, "#", text).split() for text in (printed, shown)]
    numbers = [[float(x) for x in re.findall(NUMBER, text)] for text in (printed, shown)]
    same = words[0] == words[1] and all(
        isclose(a, b, rel_tol=1e-4, abs_tol=1e-9) for a, b in zip(*numbers, strict=True)
    )
    if not same:
        raise SystemExit(f"The tutorial shows\n\n{shown}\nbut this is printed:\n\n{printed}")


if __name__ == "__main__":
    beside = Path(sys.executable).parent / "loopdyn"  # as it is installed in the environment of this interpreter
    follow(Path(__file__).parent / "tutorial.md", (str(beside),))
    print("The tutorial can be followed.")
