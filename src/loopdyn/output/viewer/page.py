"""Page: template, style, script, drawing library and scene combined."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from loopdyn.errors import LoopdynError
from loopdyn.files import write
from loopdyn.output.drawing import RunLike
from loopdyn.output.viewer.scene import Trace, describe

Theme = Literal["auto", "light", "dark"]


def write_page(
    run: RunLike,
    path: str | Path,
    *,
    frames: int | None = 1000,
    traces: Iterable[Trace] = (),
    forces: bool | Sequence[str] = True,
    plots: Sequence[str] | None = None,
    theme: Theme = "auto",
    title: str | None = None,
) -> Path:
    """Write one self-contained page that shows a run.

    Parameters
    ----------
    run : Run
    path : str or Path
        File to write, ending in ``.html``.
    frames : int or None
        Largest number of output times that are stored, evenly spaced; None stores all.
    traces : list of joint names or (body, point)
        Points whose path is drawn: a joint, or a point of a body in world coordinates at the reference pose.
        More can be chosen in the page.
    forces : bool or list of joint names
        Joints whose reactions are stored, to be shown as arrows and plots.
    plots : list of str, optional
        Initial plots, by the names of the variables in ``run.data``: ``"q"``, ``"v"``, ``"a"``,
        ``"energy"``, ``"residual"``, ``"wrench:C"`` for joint C. Others can be chosen in the page.
    theme : {"auto", "light", "dark"}
        Colours; ``"auto"`` follows the browser.
    title : str, optional
        Heading of the page; by default the name of the mechanism.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile, loopdyn as ld
    >>> from loopdyn.output.viewer.scene import StillPose
    >>> system = ld.library.pendulum().compile()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(StillPose(system, system.state()), folder + "/pendulum.html").name
    'pendulum.html'
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise LoopdynError(
            f"page '{path}': its name does not end in .html, .gif, .mp4 or .png. "
            f"Name it {path.with_suffix('.html').name}."
        )
    if theme not in ("auto", "light", "dark"):
        raise LoopdynError(f"theme '{theme}' is unknown. Use auto, light or dark.")
    scene = describe(run, frames=frames, traces=traces, forces=forces, plots=plots)
    write(path, page_text(scene | {"theme": theme}, title or run.system.name))
    return path


def page_text(scene: dict[str, Any], title: str, library_url: str = "") -> str:
    """Text of the page that shows a scene.

    Parameters
    ----------
    scene : dict
        Result of :func:`loopdyn.output.viewer.scene.describe`; optionally with ``theme``, by default ``"auto"``.
    title : str
    library_url : str
        Address of :func:`drawing_library`; by default it is a part of the page.

    Examples
    --------
    >>> import loopdyn as ld
    >>> from loopdyn.output.viewer.scene import StillPose
    >>> system = ld.library.pendulum().compile()
    >>> scene = describe(StillPose(system, system.state()))
    >>> page_text(scene, "A & B", "/library.js").count("<title>A &amp; B</title>")
    1
    """
    here = files(__package__)
    library, licence = drawing_library()
    inside = "<script>" + library.replace("</script", "<\\/script") + "</script>"
    parts = {
        "title": html.escape(title),
        "licence": html.escape(licence),
        "style": (here / "page.css").read_text("utf-8"),
        "data": json.dumps({"theme": "auto"} | scene, separators=(",", ":"), allow_nan=False).replace("</", "<\\/"),
        "library": f'<script src="{html.escape(library_url)}"></script>' if library_url else inside,
        "in_plane": (here / "in_plane.js").read_text("utf-8"),
        "page": (here / "page.js").read_text("utf-8"),
    }
    page = (here / "page.html").read_text("utf-8")
    pieces = page.split("{{")
    return pieces[0] + "".join(parts[key] + rest for key, rest in (p.split("}}", 1) for p in pieces[1:]))


def drawing_library() -> tuple[str, str]:
    """Source of three.js, and its licence."""
    here = files(__package__)
    try:
        return (here / "three.js").read_text("utf-8"), (here / "three.LICENSE").read_text("utf-8")
    except FileNotFoundError:
        raise LoopdynError(
            "the page needs three.js, which this source tree does not have. Building the package brings it: "
            "pip install --editable . (or python hatch_build.py)"
        ) from None
