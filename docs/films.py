"""Films of the pages (GIF) can be stopped: each gets a box to tick, and its first frame as a picture.

`mkdocs build` calls the hooks. A film starts stopped if the reader's system asks for less motion; without a style
sheet the film is an ordinary picture.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from PIL import Image

FILM = re.compile(r'<img alt="([^"]*)" src="([^"]*)\.gif" ?/?>')


def on_page_content(page_html: str, **_: Any) -> str:
    """Put the box and the still picture next to each film."""

    def film(found: re.Match[str]) -> str:
        words, path = found[1], found[2]
        return (
            f'<span class="film"><input type="checkbox" id="stop-{Path(path).name}">'
            f'<label for="stop-{Path(path).name}">Stop or play the film</label>'
            f'<img class="moving" alt="{words}" src="{path}.gif">'
            f'<img class="still" alt="{words}" src="{path}.still.png"></span>'
        )

    return FILM.sub(film, page_html)


def on_post_build(config: Any) -> None:
    """Write the first frame of each film beside it."""
    for film in Path(config["site_dir"]).rglob("*.gif"):
        with Image.open(film) as image:
            image.convert("RGB").save(film.with_suffix(".still.png"))
