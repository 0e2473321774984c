"""A small web server for one page, on this machine and for this machine only.

It answers requests that name localhost and none other, serves four files and three kinds of
question, and sends the page with the order to load nothing from elsewhere. The body of a request is
read before anything else is done; where its length is not clear, the connection ends, so that no
part of it can pass for another request.
"""

from __future__ import annotations

import json
import math
import re
import sys
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from ..._common.disk import strict_json
from ...errors import InputError
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
TEXT = "text/plain; charset=utf-8"
LOCAL = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?", re.IGNORECASE)
"""What a browser on this machine calls it; nothing else may stand beside it."""
DRAINED = 0.5
"""Seconds in which a refused request may still come in, so that its sender reads the answer."""
RULES = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:"


def serve(explorer: Explorer, port: int = 0) -> ThreadingHTTPServer:
    """A server that waits to be run (`serve_forever`); port 0 lets the machine choose one."""

    class Handler(_Handler):
        pass

    Handler.explorer = explorer
    if port > LAST_PORT:
        raise InputError(f"Ports end at {LAST_PORT}; got {port}. Choose another with --port.")
    try:
        return _Server((ADDRESS, port), Handler)
    except OSError as error:
        raise InputError(
            f"Port {port} cannot be used: {error.strerror}. Choose another with --port, or 0 for "
            "any."
        ) from error


class _Server(ThreadingHTTPServer):
    """Says in one line what went wrong in a request, and nothing of clients that went away."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if isinstance(error, OSError):  # reset, timed out, closed
            return
        print(
            f"revealed: a request could not be answered ({type(error).__name__}: {error}).",
            file=sys.stderr,
        )


class _Handler(BaseHTTPRequestHandler):
    explorer: Explorer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def parse_request(self) -> bool:
        """Read the head and the body of a request; False where it is refused."""
        self._content = b""
        if not super().parse_request():
            return False
        length = self._length()
        if length is None:
            return self._refuse(400, "The request has no valid length.")
        if length > LONGEST:
            return self._refuse(413, "The question is too long.")
        self._content = self.rfile.read(length)
        if len(self._content) < length:  # the client has gone
            self.close_connection = True
            return False
        if not self._local():
            return self._refuse(403, "This page is for this machine only.")
        return True

    def _length(self) -> int | None:
        """Bytes of the body, None where headers do not say it in one way."""
        lengths = self.headers.get_all("Content-Length", [])
        if self.headers.get("Transfer-Encoding") is not None or len(lengths) > 1:
            return None
        if not lengths:
            return 0 if self.command != "POST" else None
        return int(lengths[0]) if re.fullmatch("[0-9]{1,9}", lengths[0]) else None

    def _local(self) -> bool:
        """Whether the request means this machine by name, not a name that only leads here, and does
        not come from the page of another."""
        hosts, origins = (self.headers.get_all(name, []) for name in ("Host", "Origin"))
        pages = [origin.removeprefix("http://") for origin in origins]
        return len(hosts) == 1 and all(LOCAL.fullmatch(name) for name in [*hosts, *pages])

    def _refuse(self, code: int, sentence: str) -> bool:
        """Answer and end the connection, with whatever else came over it."""
        self.close_connection = True
        self._send(code, sentence.encode(), TEXT)
        with suppress(OSError):
            self.wfile.flush()
            self.connection.settimeout(DRAINED)
            for _ in range(LONGEST // 65_536):
                if not self.connection.recv(65_536):
                    break
        return False

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The same in place of the standard library's page."""
        self._refuse(code, f"{HTTPStatus(code).phrase}.")

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in PAGES:
            name, kind = PAGES[path]
            self._send(200, (files("revealed.cli.explorer") / name).read_bytes(), kind)
        elif path == "/api/model":
            self._json(self.explorer.describe)
        elif path.startswith("/api/sample/"):
            self._json(lambda: self.explorer.sample(_number(path.rpartition("/")[2])))
        else:
            self._send(404, b"There is nothing here.", TEXT)

    def do_POST(self) -> None:
        if self.path != "/api/decide":
            self._send(404, b"There is nothing here.", TEXT)
            return
        self._json(lambda: self._decide(self._body()))

    def _decide(self, asked: Any) -> dict[str, Any]:
        if not isinstance(asked, dict) or not isinstance(asked.get("context"), dict):
            raise InputError("A question must hold a context.")
        number = asked.get("sample")
        if number is not None and type(number) is not int:
            raise InputError("`sample` must be a number.")
        return self.explorer.decide(asked["context"], number)

    def _body(self) -> Any:
        try:
            return strict_json(self._content)
        except ValueError as error:
            raise InputError(f"The question is not JSON: {error}.") from error

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
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the terminal belongs to the command."""


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
