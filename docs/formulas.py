"""Formulas of the pages as MathML, which browsers draw by themselves: no script, no font, no network.

`mkdocs build` calls the hook. On a page a formula stands between dollar signs, in LaTeX: $M a = h$ in a line,
or $$ ... $$ as a block; GitHub draws the same.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

# What pymdownx.arithmatex makes of a formula: a span or a div, with the formula in \( ... \) or \[ ... \].
IN_LINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.S)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.S)
# A dot, two dots, a bar, a hat or a tilde above a letter: an accent keeps its size; other signs above it are small.
ACCENT = re.compile(
    r"<mover>(?=(?:<mrow>)?<mi[^>]*>[^<]*</mi>(?:</mrow>)?<mo[^>]*>&#x(?:002D9|000A8|000AF|0005E|0007E);</mo>)"
)


def on_page_content(page_html: str, page: Any, **_: Any) -> str:
    """Replace the formulas of a page; one that cannot be read fails the build."""

    def math(display: str) -> Any:
        def replaced(found: re.Match[str]) -> str:
            formula = html.unescape(found[1]).strip()
            try:
                drawn = ACCENT.sub('<mover accent="true">', str(convert(formula, display=display)))
                if "\\" in drawn or "<mi>&</mi>" in drawn:
                    raise ValueError("it has a command or an environment that cannot be drawn")
            except Exception as error:
                raise PluginError(f"{page.file.src_path}: formula {formula!r}: {error!r}") from error
            # a wide block scrolls in itself, by keyboard too
            return f'<div class="formula" tabindex="0">{drawn}</div>' if display == "block" else drawn

        return replaced

    return BLOCK.sub(math("block"), IN_LINE.sub(math("inline"), page_html))
