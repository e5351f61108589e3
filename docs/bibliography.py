"""Write docs/bibliography.md from docs/references.bib.

python docs/bibliography.py

`tests/docs/test_element_reference.py` compares the page with what this script writes.
"""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE / "bibliography.md"

# Pages of the theory that write a source out.
PAGES = {
    "Mufti1983": "absolute", "Blajer1993": "closure", "Blajer1994": "partition", "Huang2002": "momentum",
    "Anderson2003": "rcr",
}  # fmt: skip

INTRODUCTION = """# Bibliography

Sources that code and pages cite by the key in square brackets. The five papers are written out in the symbols of
this project, with their errata, on the pages named here. Entries without a DOI have none, or none that was checked.
The page is written by `docs/bibliography.py` from `docs/references.bib`.
"""


def entries() -> list[tuple[str, dict[str, str]]]:
    """Key and fields of every entry, in the order of the file."""
    text = (HERE / "references.bib").read_text(encoding="utf-8")
    found = []
    for key, body in re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", text, re.M | re.S):
        fields = dict(re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", body, re.M))
        found.append((key, {name: plain(value) for name, value in fields.items()}))
    return found


def plain(text: str) -> str:
    """LaTeX of the file as ordinary text."""
    return text.replace(r"{\o}", "ø").replace("`", "'").replace("{", "").replace("}", "")


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for key, f in entries():
        authors = f["author"].replace(" and ", "; ")
        where = [f[name] for name in ("journal", "institution", "number", "publisher") if name in f]
        if "edition" in f:
            where.append(f"edition {f['edition']}")
        text = f"{authors}: *{f['title']}*. {', '.join(where)}, {f['year']}."
        if "doi" in f:
            text += f" [doi:{f['doi']}](https://doi.org/{f['doi']})"
        if key in PAGES:
            text += f" Written out in [{PAGES[key]}](theory/{PAGES[key]}.md)."
        lines.append(f"- **{key}.** {text}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
