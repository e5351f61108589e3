"""Names in docstrings as links: the roles of Sphinx (func, class, ...), unknown to Markdown, become references.

`mkdocs build` calls the hook. A name that the reference lists, or a member of it, becomes a link; others stay code.
"""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from typing import Any

import loopdyn

REFERENCE = Path(__file__).parent / "reference"
# A role as it is after Markdown: the name alone, or a text with the name in angle brackets.
ROLE = re.compile(r":(?:func|class|meth|mod|data|attr|exc):(?:<code>|`)~?(.*?)(?:</code>|`)", re.S)
TITLED = re.compile(r"(.*?)\s*<([\w.]+)>$", re.S)
# Anchor of a documented object: what follows it belongs to it.
ANCHOR = re.compile(r'id="(loopdyn(?:\.\w+)+)"')


@cache
def listed() -> frozenset[str]:
    """Identifiers that the pages of the reference document."""
    pages = (page.read_text("utf-8") for page in REFERENCE.rglob("*.md"))
    return frozenset(name for text in pages for name in re.findall(r"^::: (loopdyn\.[\w.]+)", text, re.M))


def documented(identifier: str) -> str | None:
    """Anchor of a name: of itself, or of its class if it is a field or inherited, which has no anchor of its own."""
    if identifier in listed():
        return identifier
    owner, _, member = identifier.rpartition(".")
    if owner not in listed():
        return None
    thing: Any = loopdyn
    for part in owner.split(".")[1:]:
        thing = getattr(thing, part)
    found = getattr(thing, member, None)
    own = callable(found) or isinstance(found, property) or hasattr(found, "attrname")  # the last: a cached property
    if own and member in vars(thing):
        return identifier
    return owner if found is not None or member in getattr(thing, "__annotations__", {}) else None


def identified(name: str, context: str) -> str | None:
    """Anchor of a name in the docstring of `context`: a full name, a member of its class or one of the reference."""
    parts = context.split(".")
    candidates = [name] if name.startswith("loopdyn.") else [f"loopdyn.{name}"]
    candidates += [".".join([*parts[:k], name]) for k in range(len(parts), 1, -1)]
    first, _, member = name.partition(".")
    whole = [x for x in sorted(listed()) if x.rpartition(".")[2] == first]
    candidates += [f"{x}.{member}" if member else x for x in whole]
    return next((anchor for x in candidates if (anchor := documented(x))), None)


def on_page_content(page_html: str, **_: Any) -> str:
    """Replace the roles of a page."""
    anchors = [(found.start(), found[1]) for found in ANCHOR.finditer(page_html)]

    def linked(found: re.Match[str]) -> str:
        """Reference that the plugin autorefs resolves when all pages are known."""
        title = name = html.unescape(found[1]).strip()
        if given := TITLED.match(title):
            title, name = given[1], given[2]
        context = next((x for place, x in reversed(anchors) if place < found.start()), "loopdyn")
        anchor = identified(name.removesuffix("()"), context)
        code = f"<code>{html.escape(title)}</code>"
        return f'<autoref identifier="{anchor}" optional>{code}</autoref>' if anchor else code

    return ROLE.sub(linked, page_html)
