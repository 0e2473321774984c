"""A small web server for one page, on this machine and for this machine only.

It answers requests that name localhost and none other, serves four files and three kinds of
question, and sends the page with the order to load nothing from elsewhere.
"""

from __future__ import annotations

import json
import math
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from ..errors import InputError
from .views import Explorer

ADDRESS = "127.0.0.1"
PAGES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/drawing.js": ("drawing.js", "text/javascript; charset=utf-8"),
}
LAST_PORT = 65_535
LONGEST = 1_000_000
"""Bytes of a question."""
RULES = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:"


def serve(explorer: Explorer, port: int = 0) -> ThreadingHTTPServer:
    """A server that waits to be run (`serve_forever`); port 0 lets the machine choose one."""

    class Handler(_Handler):
        pass

    Handler.explorer = explorer
    if port > LAST_PORT:
        raise InputError(f"Ports end at {LAST_PORT}; got {port}. Choose another with --port.")
    try:
        return ThreadingHTTPServer((ADDRESS, port), Handler)
    except OSError as error:
        raise InputError(
            f"Port {port} cannot be used: {error.strerror}. Choose another with --port, or 0 for "
            "any."
        ) from error


class _Handler(BaseHTTPRequestHandler):
    explorer: Explorer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        if not self._local():
            return
        path = self.path.partition("?")[0]
        if path in PAGES:
            name, kind = PAGES[path]
            self._send(200, (files("revealed.explorer") / name).read_bytes(), kind)
        elif path == "/api/model":
            self._json(self.explorer.describe)
        elif path.startswith("/api/sample/"):
            self._json(lambda: self.explorer.sample(_number(path.rpartition("/")[2])))
        else:
            self._send(404, b"There is nothing here.", "text/plain; charset=utf-8")

    def do_POST(self) -> None:
        if not self._local():
            return
        if self.path != "/api/decide":
            self._send(404, b"There is nothing here.", "text/plain; charset=utf-8")
            return
        self._json(lambda: self._decide(self._body()))

    def _decide(self, asked: Any) -> dict[str, Any]:
        if not isinstance(asked, dict) or not isinstance(asked.get("context"), dict):
            raise InputError("A question must hold a context.")
        number = asked.get("sample")
        if number is not None and not isinstance(number, int):
            raise InputError("`sample` must be a number.")
        return self.explorer.decide(asked["context"], number)

    def _body(self) -> Any:
        length = _number(self.headers.get("Content-Length", ""))
        if length > LONGEST:
            self.close_connection = True
            raise InputError("The question is too long.")
        try:
            return json.loads(self.rfile.read(length))
        except (ValueError, RecursionError) as error:
            raise InputError(f"The question is not JSON: {error}.") from error

    def _local(self) -> bool:
        """Whether the request means this machine by name, not a name that only leads here."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host in ("127.0.0.1", "localhost"):
            return True
        self.close_connection = True
        self._send(403, b"This page is for this machine only.", "text/plain; charset=utf-8")
        return False

    def _json(self, answer: Any) -> None:
        try:
            content, code = answer(), 200
        except InputError as error:
            content, code = {"error": str(error)}, 400
        except Exception as error:  # the page must hear of it, and the server go on
            content, code = {"error": f"{type(error).__name__}: {error}"}, 500
        text = json.dumps(_plain(content), allow_nan=False)
        self._send(code, text.encode(), "application/json; charset=utf-8")

    def _send(self, code: int, content: bytes, kind: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", RULES)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the terminal belongs to whoever started the command."""


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InputError(f"{text[:20]!r} is not a number.")
    return int(text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
