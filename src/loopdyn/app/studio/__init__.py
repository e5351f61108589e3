"""`loopdyn studio`: a local page to edit a mechanism, move it, run it and view the results.

`folder` restricts file access, `guard` checks requests, `work` computes (in separate processes, `worker`), `page` is
the user interface, and `server` combines them. The pages are made by NiceGUI; pictures and plots are those of
:mod:`loopdyn.output.viewer`.
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
MOST_PAGES = 8  # most pages open at once: each may have two processes of some 300 MB


def open_studio(file: Path | None = None, *, port: int = PORT, browser: bool = True) -> None:
    """Serve the studio in the current folder until Ctrl-C.

    Parameters
    ----------
    file : Path, optional
        Model file to open, in the current folder or below.
    port : int
        Port of 127.0.0.1; 0 chooses a free one.
    browser : bool
        Whether to open the page in the browser.

    Raises
    ------
    LoopdynError
        If NiceGUI is not installed, the port is in use, or the file cannot be read.
    """
    if importlib.util.find_spec("nicegui") is None:
        raise LoopdynError("the studio needs NiceGUI, which is missing. Install it: pip install 'loopdyn[studio]'")
    folder = Folder(Path.cwd())
    name = None if file is None else _name_in(folder, file)
    sock = bind(port)
    from loopdyn.app.studio.server import serve  # takes seconds to import

    serve(folder, name, sock, browser)


def _name_in(folder: Folder, file: Path) -> str:
    """Name of a file within the folder that can be opened."""
    whole = Path(folder.root, file).resolve()
    if not whole.is_relative_to(folder.root):
        raise LoopdynError(
            f"'{file}' is not in this folder, and the studio reads and writes only here. "
            f"Start it there: cd '{whole.parent}' && loopdyn studio '{whole.name}'"
        )
    name = whole.relative_to(folder.root).as_posix()
    if whole.suffix.lower() in FOREIGN:
        raise LoopdynError(
            f"the studio edits model files in YAML, which '{file}' is not. "
            f"Convert it first: loopdyn convert '{file}' '{file.with_suffix('.yaml')}'"
        )
    folder.read(name)
    return name


def bind(port: int) -> socket.socket:
    """Socket at a local port of this machine.

    Raises
    ------
    LoopdynError
        If the port is in use.

    Examples
    --------
    >>> with bind(0) as sock:
    ...     sock.getsockname()[0]
    '127.0.0.1'
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if os.name == "posix":  # a port that was used a moment ago is free; on Windows this option would share a port
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
        sock.listen()
    except OSError as error:
        sock.close()
        raise LoopdynError(
            f"port {port} of {HOST} cannot be used ({error.strerror}). "
            "Another studio may be running there: close it, or choose a free port: --port 0"
        ) from None
    return sock
