"""The server of the studio: one address of this machine, its own pages only."""

from __future__ import annotations

import socket
import webbrowser
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from nicegui import app as pages
from nicegui import core, ui

from loopdyn.errors import LoopdynError
from loopdyn.studio.folder import Folder
from loopdyn.studio.guard import HOST, Guard
from loopdyn.studio.page import Session, add_routes

MAX_MESSAGE = 5_000_000  # bytes of one message of the page: the largest text in the editor, escaped


def bind(port: int) -> socket.socket:
    """A socket at a port of this machine alone.

    Raises
    ------
    LoopdynError
        If the port is taken.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if socket.SO_REUSEADDR and hasattr(socket, "AF_UNIX"):  # on Windows it would let two programs share a port
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


def serve(folder: Folder, file: str | None, port: int, browser: bool) -> None:
    """Serve the studio until Ctrl-C."""
    sock = bind(port)
    port = sock.getsockname()[1]
    sessions: dict[str, Session] = {}
    outer = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_routes(outer, sessions)

    @ui.page("/", title="loopdyn studio")
    async def index() -> None:
        session = Session(folder, file)
        sessions[session.token] = session

        def forget() -> None:
            sessions.pop(session.token, None)
            session.end()

        ui.context.client.on_delete(forget)
        await session.build()

    def end_all() -> None:
        for session in list(sessions.values()):
            session.end()

    pages.on_shutdown(end_all)
    core.sio.eio.max_http_buffer_size = MAX_MESSAGE
    ui.run_with(outer, title="loopdyn studio", tailwind=False, show_welcome_message=False)
    address = f"http://{HOST}:{port}/"
    print(f"loopdyn studio: {address} (folder {folder.root}). Ctrl-C ends it.", flush=True)
    if browser:
        webbrowser.open(address)  # the socket listens already: the page comes as soon as the server runs
    config = uvicorn.Config(Guard(outer, port), log_level="warning", timeout_graceful_shutdown=2, server_header=False)
    uvicorn.Server(config).run(sockets=[sock])


def start(folder: Path, file: Path | None, port: int, browser: bool) -> None:
    """Check the file, then serve."""
    place = Folder(folder)
    name = None
    if file is not None:
        whole = Path(folder, file).absolute()
        if not whole.resolve().is_relative_to(place.root):
            raise LoopdynError(
                f"'{file}' is not in this folder, and the studio reads and writes only here. "
                f"Start it there: cd '{whole.parent}' && loopdyn studio {whole.name}"
            )
        name = whole.resolve().relative_to(place.root).as_posix()
        place.read(name)
    serve(place, name, port, browser)
