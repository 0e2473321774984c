"""Debian's chromium for tests, driven over its debugging pipe: no port, no driver, no package.

Chromium started with `--remote-debugging-pipe` reads commands of the DevTools protocol from file
descriptor 3 and writes answers and events to 4, as JSON separated by zero bytes.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path

FOUND = shutil.which("chromium")
MISSING = "chromium is not installed (Debian: apt-get install chromium): the page is not tested"
FLAGS = [
    "--headless",
    "--no-sandbox",  # tests may run as root, in a container
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
PATIENCE_S = 300.0


class Browser:
    """One chromium with one page; everything it says is kept in `events`."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        reads, self._to = _pipe()
        self._from, writes = _pipe()
        log = str(Path(self._folder.name) / "log")
        arguments = [FOUND, *FLAGS, f"--user-data-dir={self._folder.name}/profile", "about:blank"]
        self._pid = os.posix_spawn(
            FOUND,
            arguments,
            {**os.environ, "LANG": "C.UTF-8"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                (os.POSIX_SPAWN_DUP2, reads, 3),
                (os.POSIX_SPAWN_DUP2, writes, 4),
            ],
            setpgroup=0,  # a group of its own, so that nothing is left behind
        )
        os.close(reads)
        os.close(writes)
        self._buffer, self._last, self._session = b"", 0, None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for end in (self._to, self._from):
            os.close(end)
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._folder.cleanup()

    # --- what a test does ---

    def open(self, path, width=1280, height=900, dark=False):
        """Load a file, or an address, in a window of that size, and wait until it has settled."""
        self.resize(width, height)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.events.clear()
        is_address = str(path).startswith("http")
        self.call("Page.navigate", url=path if is_address else Path(path).resolve().as_uri())
        self._wait_for("Page.loadEventFired")
        # A request or an error may come just after; two frames let the scripts finish.
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def resize(self, width, height):
        """Give the page a window of that many CSS pixels; a narrow one is a phone's."""
        phone = width < 600
        size = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1}
        self.call("Emulation.setDeviceMetricsOverride", **size, mobile=phone)

    def run(self, script):
        """The value of a JavaScript expression, waited for if it is a promise."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key, code, text=""):
        """Press and release a key, as a keyboard would."""
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def click(self, selector):
        """Click in the middle of an element, having scrolled to it."""
        place = self.run(
            f"""(() => {{
                const found = document.querySelector({json.dumps(selector)});
                found.scrollIntoView({{block: "center", inline: "center", behavior: "instant"}});
                const box = found.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        where = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **where)

    def picture(self, path, full=True):
        """Save a screenshot, of the whole page or of what the window shows."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    def complaints(self):
        """Errors and warnings of the page since it was opened."""
        self._settle()
        found = []
        for event in self.events:
            what = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(what["exceptionDetails"]["text"])
            elif event["method"] == "Log.entryAdded":
                found.append(what["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled":
                found.append(f"console.{what['type']}")
        return found

    def requests(self):
        """Addresses that the page has asked for since it was opened."""
        self._settle()
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    # --- the protocol ---

    def call(self, method, **params):
        """Send one command and return its result; events on the way are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def _wait_for(self, method):
        while not any(event["method"] == method for event in self.events):
            message = self._next()
            self.events += [message] if "method" in message else []

    def _settle(self):
        """A round trip: what the page has done so far has been told by then."""
        self.run("0")

    def _next(self):
        end = time.monotonic() + PATIENCE_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(self._from, 1 << 20) if ready else b""
            if not piece:
                said = (Path(self._folder.name) / "log").read_text("utf-8", "replace")[-2000:]
                raise AssertionError(f"chromium {'left' if ready else 'is silent'}: {said}")
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


def _pipe():
    """Both ends well above 4, so that moving them to 3 and 4 does not close one."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high
