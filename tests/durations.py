"""How long the tests of each folder take: the last column of the table in tests/README.md, from pytest's reports.

    python -m pytest -m "not slow" --junitxml=fast.xml tests
    python -m pytest -m slow --junitxml=slow.xml tests
    python tests/durations.py fast.xml slow.xml

Times of setup, call and teardown are summed, whichever process ran them: what one core would take.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

PAGE = Path(__file__).parent / "README.md"


def seconds(report: str) -> Counter:
    """Seconds by folder of the tests."""
    found = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        package, _, rest = case.get("classname", "").partition(".")
        if package == "tests":
            found[rest.partition(".")[0]] += float(case.get("time", 0.0))
    return found


def filled(page: str, fast: Counter, slow: Counter) -> str:
    """The page with the last cell of each folder's row filled in."""
    lines = page.splitlines()
    for n, line in enumerate(lines):
        folder = line.removeprefix("| `").partition("/` |")[0]
        if line.startswith("| `") and folder in {*fast, *slow}:
            cells = line.split(" | ")
            cells[-1] = f"{fast[folder]:.0f} s + {slow[folder]:.0f} s |"
            lines[n] = " | ".join(cells)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), *map(seconds, sys.argv[1:])), encoding="utf-8")
