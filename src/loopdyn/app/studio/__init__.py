"""`loopdyn studio`: a local page to edit a mechanism, move it, run it and look at the run.

`folder` says which files may be touched, `guard` who may talk to the page, `work` what is computed (in processes of
their own, `worker`), `page` what is seen, and `server` brings them together. The pages are made by NiceGUI; pictures
and plots are those of :mod:`loopdyn.output.viewer`.
"""

from __future__ import annotations

import importlib.util
import os
import socket
from pathlib import Path

from loopdyn.app.studio.folder import Folder
from loopdyn.app.studio.guard import HOST
from loopdyn.errors import LoopdynError

PORT = 8765
FOREIGN = (".xml", ".mjcf", ".urdf", ".sdf")  # models of other tools
MOST_PAGES = 8  # open at once: each may have two processes of some 300 MB


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
    folder = Folder(Path.cwd())
    name = None if file is None else _name_in(folder, file)
    sock = bind(port)
    from loopdyn.app.studio.server import serve  # takes seconds to import

    serve(folder, name, sock, browser)


def _name_in(folder: Folder, file: Path) -> str:
    """The name of a file that can be opened in the folder."""
    whole = Path(folder.root, file).resolve()
    if not whole.is_relative_to(folder.root):
        raise LoopdynError(
            f"'{file}' is not in this folder, and the studio reads and writes only here. "
            f"Start it there: cd '{whole.parent}' && loopdyn studio '{whole.name}'"
        )
    name = whole.relative_to(folder.root).as_posix()
    if whole.suffix.lower() in FOREIGN:
        raise LoopdynError(
            f"the studio edits the text of a model file, and '{file}' is none. "
            f"Convert it first: loopdyn convert '{file}' '{file.with_suffix('.yaml')}'"
        )
    folder.read(name)
    return name


def bind(port: int) -> socket.socket:
    """A socket at a port of this machine alone.

    Raises
    ------
    LoopdynError
        If the port is taken.

    Examples
    --------
    >>> with bind(0) as sock:
    ...     sock.getsockname()[0]
    '127.0.0.1'
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":  # a port that was used a moment ago is free; on Windows it would mean to share a port
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
        sock.listen()
    except OSError as error:
        sock.close()
        raise LoopdynError(
            f"port {port} of {HOST} cannot be used ({error.strerror}). "
            "Another studio may run there: close it, or let a free port be taken: --port 0"
        ) from None
    return sock
