"""Names in docstrings as links: the roles of Sphinx (func, class, ...), unknown to Markdown, become references.

`mkdocs build` calls the hook. A name that the reference lists becomes a link to it; another one stays code.
"""

from __future__ import annotations

import html
import re
from typing import Any

# A role as it is after Markdown: the name alone, or a text with the name in angle brackets.
ROLE = re.compile(r":(?:func|class|meth|mod|data|attr|exc):(?:<code>|`)~?(.*?)(?:</code>|`)", re.S)
TITLED = re.compile(r"(.*?)\s*<([\w.]+)>$", re.S)


def linked(found: re.Match[str]) -> str:
    """Reference that the plugin autorefs resolves when all pages are known, and leaves as it is if it cannot."""
    title = name = html.unescape(found[1]).strip()
    if given := TITLED.match(title):
        title, name = given[1], given[2]
    name = name.removesuffix("()")
    identifier = name if name.startswith("loopdyn.") else f"loopdyn.{name}"
    return f'<autoref identifier="{identifier}" optional><code>{html.escape(title)}</code></autoref>'


def on_page_content(page_html: str, **_: Any) -> str:
    """Replace the roles of a page."""
    return ROLE.sub(linked, page_html)
