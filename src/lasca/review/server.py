"""The local web page of a review: Starlette and uvicorn on the loopback interface, for people on this machine alone.

Who may talk to it: requests to 127.0.0.1 or localhost at its own port (the Host header is checked, so that no other
name can be pointed at it), with the token that is part of the address, and – where they change something – with JSON
from its own pages (Origin is checked, other sites get no permission to ask). A content security policy allows its own
script and style and nothing else; bodies are small; text is never markup.
"""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from lasca.errors import LascaError
from lasca.review.session import Session

__all__ = ["Address", "make_app", "serve"]

MAX_BODY = 256 << 10
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FILES = {
    "": ("review.html", "text/html"),
    "review.js": ("review.js", "text/javascript"),
    "review.css": ("review.css", "text/css"),
}


class Address:
    """Where the page is: port and token."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.port, self.token = port, token or secrets.token_urlsafe(18)

    @property
    def url(self) -> str:
        """The address to open."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which it may be asked."""
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}")


class _RefusedError(Exception):
    def __init__(self, status: int, words: str) -> None:
        self.status, self.words = status, words


class _ThisMachine:
    """Answers nobody who asked for another host, whatever was asked: pages, redirects and errors alike."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self.app, self.hosts = app, [host.encode() for host in hosts]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            asked = [value for name, value in scope["headers"] if name == b"host"]
            if len(asked) != 1 or asked[0] not in self.hosts:
                refused = PlainTextResponse("this page is for this machine alone", 421, HEADERS)
                await refused(scope, receive, send)
                return
        await self.app(scope, receive, send)


async def _body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise _RefusedError(415, "JSON is expected")
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > MAX_BODY:
            raise _RefusedError(413, "too much")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _RefusedError(400, "this is not JSON") from None
    if not isinstance(value, dict):
        raise _RefusedError(400, "an object is expected")
    return value


def _text(value: Any, name: str, limit: int = 200) -> str:
    if not isinstance(value, str) or len(value) > limit or any("\ud800" <= ch <= "\udfff" for ch in value):
        raise _RefusedError(400, f"{name} must be a short text")
    return value


def _readings(value: Any) -> list[tuple[tuple[int, int, str], ...]]:
    try:
        if not isinstance(value, list) or len(value) > 9:
            raise ValueError
        made = []
        for reading in value:
            if not isinstance(reading, list):
                raise ValueError
            spans = []
            for start, stop, kind in reading:
                if type(start) is not int or type(stop) is not int or not isinstance(kind, str) or len(kind) > 500:
                    raise ValueError
                spans.append((start, stop, kind))
            made.append(tuple(spans))
        return made
    except (TypeError, ValueError):
        raise _RefusedError(400, "readings are lists of [start, stop, type]") from None


def make_app(session: Session, address: Address, title: str = "") -> Starlette:
    """Return the application."""

    def guarded(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            response: Response
            try:
                if not secrets.compare_digest(str(request.path_params["token"]).encode(), address.token.encode()):
                    raise _RefusedError(404, "not found")
                origin = request.headers.get("origin")
                if origin is not None and origin not in {f"http://{host}" for host in address.hosts}:
                    raise _RefusedError(403, "another site may not ask")
                if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                    raise _RefusedError(403, "another site may not ask")
                response = await handle(request)
            except _RefusedError as refused:
                response = PlainTextResponse(refused.words, refused.status)
            except LascaError as error:
                response = JSONResponse({"error": str(error)}, 409)
            for name, value in HEADERS.items():
                response.headers[name] = value
            return response

        return answer

    @guarded
    async def file(request: Request) -> Response:
        found = FILES.get(str(request.path_params.get("name", "")))
        if found is None:
            raise _RefusedError(404, "not found")
        text = resources.files("lasca.review").joinpath("page", found[0]).read_text(encoding="utf-8")
        return Response(text, media_type=f"{found[1]}; charset=utf-8")

    def number(request: Request, name: str, usual: int, most: int) -> int:
        text = request.query_params.get(name, str(usual))
        if not text.isdecimal() or len(text) > 9:
            raise _RefusedError(400, f"{name} must be a number")
        return min(int(text), most)

    @guarded
    async def look(request: Request) -> Response:
        ask = request.query_params
        who = _text(ask.get("who", ""), "who", 80)
        what = request.path_params["what"]
        if what == "state":
            return JSONResponse({"title": title} | await run_in_threadpool(session.state, who))
        if what == "queue":
            words, second = _text(ask.get("words", ""), "words"), ask.get("second") == "1"
            first, n = number(request, "first", 0, 10**9), number(request, "n", 200, 1000)
            return JSONResponse(await run_in_threadpool(session.part, who, first, n, words, second))
        name = _text(ask.get("item", ""), "item")
        if what == "item":
            return JSONResponse(await run_in_threadpool(session.item, name, ask.get("votes") == "1"))
        if what == "alike":
            return JSONResponse({"items": await run_in_threadpool(session.alike, name)})
        raise _RefusedError(404, "not found")

    @guarded
    async def act(request: Request) -> Response:
        body = await _body(request)
        who = _text(body.get("who", ""), "who", 80)
        what = request.path_params["what"]
        if what == "undo":
            return JSONResponse(await run_in_threadpool(session.undo, who))
        if what != "decide":
            raise _RefusedError(404, "not found")
        name, readings = _text(body.get("item", ""), "item"), _readings(body.get("readings"))
        alike = body.get("alike", [])
        if not isinstance(alike, list) or len(alike) > 1000:
            raise _RefusedError(400, "alike must be a list of items")
        more = [other for other in dict.fromkeys(_text(other, "alike") for other in alike) if other != name]
        votes, missed = body.get("votes") is True, body.get("missed") is True

        def decide() -> dict[str, Any]:
            return session.decide(who, name, readings, votes=votes, alike=more, missed=missed)

        return JSONResponse(await run_in_threadpool(decide))

    return Starlette(
        routes=[
            Route("/{token}/api/{what}", look, methods=["GET"]),
            Route("/{token}/api/{what}", act, methods=["POST"]),
            Route("/{token}/{name}", file, methods=["GET"]),
            Route("/{token}/", file, methods=["GET"]),
        ],
        middleware=[Middleware(_ThisMachine, hosts=address.hosts)],
    )


def serve(
    session: Session, *, port: int = 0, title: str = "", token: str | None = None, ready: Callable[[str], None]
) -> None:
    """Serve the page until the process is stopped; `ready` is called with its address."""
    import uvicorn

    # named as TCP, asyncio sends what is written at once; else an answer's body waits 40 ms for its header's receipt
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()  # before anybody is told the address: who comes early waits
        address = Address(listener.getsockname()[1], token)
        app = make_app(session, address, title)
        config = uvicorn.Config(
            app, log_level="error", access_log=False, server_header=False, timeout_graceful_shutdown=1
        )
        ready(address.url)
        uvicorn.Server(config).run(sockets=[listener])
