"""`loopdyn studio`: a local page to edit a mechanism, move it, run it and look at the run.

`folder` says which files may be touched, `guard` who may talk to the page, `work` what is computed (in processes of
their own, `worker`), `page` what is seen, and `server` brings them together. The pages are made by NiceGUI; pictures
and plots are those of :mod:`loopdyn.viewer`.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from loopdyn.errors import LoopdynError

PORT = 8765


def open_studio(file: Path | None = None, *, port: int = PORT, browser: bool = True) -> None:
    """Serve the studio in the present folder until Ctrl-C.

    Parameters
    ----------
    file : Path, optional
        Model file to open, in the present folder or below.
    port : int
        Of 127.0.0.1; 0 takes a free one.
    browser : bool
        Whether to open the page in the browser.

    Raises
    ------
    LoopdynError
        If NiceGUI is not installed, the port is taken, or the file is not to be read.
    """
    if importlib.util.find_spec("nicegui") is None:
        raise LoopdynError("the studio needs NiceGUI, which is missing. Install it: pip install 'loopdyn[studio]'")
    from loopdyn.studio.server import start

    start(Path.cwd(), file, port, browser)
