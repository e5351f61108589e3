"""Guard of the studio: accepts requests only from pages that it served itself, at its own address.

A page of another site that the user has open can send requests to 127.0.0.1 too. It is recognised by headers that
browsers set and pages cannot: ``Origin`` is the site of the page; ``Host`` the name in the address, which is that of
the other site if its name was resolved to this machine (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

HTTP = 80  # the port that browsers leave out of an address
REFUSAL = 403
POLICY_VIOLATION = 1008  # code of RFC 6455 with which a websocket is refused

# The page and its frames load nothing from other sites, send nothing to them, and cannot be embedded in other pages.
# Vue compiles its templates in the browser, which 'unsafe-eval' allows.
HEADERS = {
    "content-security-policy": (
        "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


def refusal(headers: Iterable[tuple[bytes, bytes]], port: int, websocket: bool) -> str:
    """Reason to refuse a request; empty if it is accepted.

    Examples
    --------
    >>> refusal([(b"host", b"127.0.0.1:8765")], 8765, websocket=False)
    ''
    >>> refusal([(b"host", b"evil.example:8765")], 8765, websocket=False)
    'this address is not the one the studio was started at'
    """
    given: dict[bytes, list[str]] = {}
    for name, value in headers:
        given.setdefault(name.lower(), []).append(value.decode("latin-1"))
    hosts, origins = given.get(b"host", []), given.get(b"origin", [])
    known = NAMES if port == HTTP else [f"{name}:{port}" for name in NAMES]
    if len(hosts) != 1 or hosts[0] not in known:
        return "this address is not the one the studio was started at"
    if any(origin != f"http://{hosts[0]}" for origin in origins):
        return "the request comes from a page of another site"
    if websocket and not origins:  # every browser sends it
        return "the request does not say from which page it comes"
    return ""


class Guard:
    """ASGI middleware that passes requests of the studio's own pages and refuses all others."""

    def __init__(self, app: App, port: int):
        self.app, self.port = app, port

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        websocket = scope["type"] == "websocket"
        reason = refusal(scope["headers"], self.port, websocket)
        if reason and websocket:
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason})
        elif reason:
            body = f"Refused: {reason}. Open http://{HOST}:{self.port}/ in the browser.\n".encode()
            head = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": REFUSAL, "headers": head})
            await send({"type": "http.response.body", "body": body})
        else:
            await self.app(scope, receive, send if websocket else _with_headers(send))


def _with_headers(send: Send) -> Send:
    async def out(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message["headers"] = [*message.get("headers", []), *added]
        await send(message)

    return out
