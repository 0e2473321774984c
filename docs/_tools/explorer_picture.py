"""The picture of the explorer: the model of the tour in a real browser, one sample opened.

`python docs/_tools/explorer_picture.py` fits the model of the tour, serves it on this machine and
writes docs/images/explorer.png and explorer-dark.png. It needs chromium, which only this picture
and the tests of pages do; the files change when the tour or the page does, not by themselves.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import threading
from pathlib import Path

from PIL import Image

from revealed import cli
from revealed.cli.explorer import Explorer, serve
from revealed.cli.store import load_model
from revealed.cli.tour import copy_files

DOCS = Path(__file__).resolve().parents[1]
SAMPLE = "2026-06-19"
"""The decision that the learned costs understand least: see what `revealed explain` prints."""
LINES = "[...document.querySelectorAll('#list li')]"
WHEN_THERE = """new Promise(done => {
    const look = () => document.querySelector("#list li") ? done() : setTimeout(look, 50);
    look();
})"""
SIZE = {"width": 1180, "height": 1012}


def fitted(folder: Path):
    """The model that the commands of the tour make."""
    copy_files(folder)
    files = {"problem": "plan.mps", "contexts": "contexts.csv", "decisions": "decisions.csv"}
    words = [f"--{name}={folder / file}" for name, file in files.items()]
    with contextlib.redirect_stdout(io.StringIO()):
        cli.main(["fit", *words, f"--out={folder / 'model'}"])
    return load_model(folder / "model")


def write(folder: Path = DOCS / "images") -> None:
    """Both pictures, of the window as it opens with the sample chosen."""
    sys.path.insert(0, str(DOCS.parent / "tests"))
    from browser import Browser

    with tempfile.TemporaryDirectory() as made, Browser() as browser:
        model = fitted(Path(made))
        server = serve(Explorer(model, model.samples))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, dark in (("explorer", False), ("explorer-dark", True)):
            browser.open(f"http://127.0.0.1:{server.server_address[1]}/", **SIZE, dark=dark)
            browser.call(
                "Emulation.setDeviceMetricsOverride", **SIZE, deviceScaleFactor=2, mobile=False
            )
            browser.run(WHEN_THERE)
            browser.run(
                f"{LINES}.find(one => one.textContent.includes('{SAMPLE}')).className = 'it'"
            )
            browser.click("#list .it")
            browser.run("scrollTo(0, 0)")
            browser.run("new Promise(done => setTimeout(done, 1000))")
            browser.picture(folder / f"{name}.png", full=False)
            _shrink(folder / f"{name}.png")
        server.shutdown()
        server.server_close()


def _shrink(path: Path) -> None:
    """256 colors are plenty for a page, and less than half the bytes."""
    picture = Image.open(path).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    write()
