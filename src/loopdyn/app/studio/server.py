"""Server of the studio: one local address, its own pages only."""

from __future__ import annotations

import contextlib
import socket
import threading
import webbrowser

import uvicorn
from fastapi import FastAPI
from nicegui import app as pages
from nicegui import core, ui

from loopdyn.app.studio import MOST_PAGES
from loopdyn.app.studio.folder import Folder
from loopdyn.app.studio.guard import HOST, Guard
from loopdyn.app.studio.page import Session, add_routes
from loopdyn.app.studio.worker import Worker

MAX_MESSAGE = 5_000_000  # bytes of one message of the page: the largest text in the editor, escaped


def serve(folder: Folder, file: str | None, sock: socket.socket, browser: bool) -> None:
    """Serve the studio at a socket until Ctrl-C."""
    port = sock.getsockname()[1]
    sessions: dict[str, Session] = {}
    spare = [Worker(folder.root)]  # for the first page: it starts while the browser does
    spare[0].start()
    outer = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_routes(outer, sessions)

    def enter(session: Session) -> str:
        if len(sessions) >= MOST_PAGES:
            return f"{MOST_PAGES} pages of the studio are open. Close one of them, then load this page again."
        sessions[session.token] = session
        if spare:
            session.checker = spare.pop()
        return ""

    @ui.page("/", title="loopdyn studio")
    async def index() -> None:
        session = Session(folder, file)

        def forget() -> None:
            sessions.pop(session.token, None)
            session.end()

        ui.context.client.on_delete(forget)
        await session.build(enter)

    def end_all() -> None:
        for session in list(sessions.values()):
            session.end()
        for worker in spare:
            worker.close()

    pages.on_shutdown(end_all)
    core.sio.eio.max_http_buffer_size = MAX_MESSAGE
    ui.run_with(outer, title="loopdyn studio", tailwind=False, show_welcome_message=False)
    address = f"http://{HOST}:{port}/"
    print(f"loopdyn studio: {address} (folder {folder.root}). Ctrl-C ends it.", flush=True)
    if browser:
        # The socket listens already: the page loads as soon as the server runs. A browser in the terminal would block.
        threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
    config = uvicorn.Config(Guard(outer, port), log_level="warning", timeout_graceful_shutdown=2, server_header=False)
    with contextlib.suppress(KeyboardInterrupt):  # the regular end
        uvicorn.Server(config).run(sockets=[sock])
