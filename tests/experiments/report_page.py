"""The report's page for tests: made by the command, and taken apart again."""

import argparse
from html.parser import HTMLParser
from types import SimpleNamespace

from revealed_experiments import report

VOID = {"meta", "br", "col"}


class Page(HTMLParser):
    """A page taken apart: its elements with their text, in order; refuses unbalanced markup."""

    def __init__(self, markup):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(markup)
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, name, attributes):
        self.handle_startendtag(name, attributes)
        if name not in VOID:
            self._open.append(self.elements[-1])

    def handle_startendtag(self, name, attributes):
        inside = self._open[:]
        element = SimpleNamespace(name=name, attributes=dict(attributes), text="", inside=inside)
        self.elements.append(element)

    def handle_endtag(self, name):
        assert self._open[-1].name == name, f"</{name}> closes <{self._open[-1].name}>"
        self._open.pop()

    def handle_data(self, data):
        for element in self._open:
            element.text += data

    def named(self, name, **attributes):
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return [
            e for e in self.elements if e.name == name and wanted.items() <= e.attributes.items()
        ]

    def rows(self, caption):
        """The table under a caption as dictionaries from heading (with its group) to cell text."""
        (box,) = self.named("div", **{"role": "region", "aria-label": caption})
        within = [e for e in self.elements if box in e.inside]
        groups = [e for e in within if e.inside[-1].attributes.get("class") == "groups"]
        above = [e.text for e in groups for _ in range(int(e.attributes["colspan"]))]
        headings = [e.text for e in within if e.attributes.get("scope") == "col"]
        above = above or [""] * len(headings)
        keys = [f"{a} {h}".strip() for a, h in zip(above, headings, strict=True)]
        cells = [e.text for e in within if e.name in ("td", "th") and e.inside[-2].name == "tbody"]
        return [dict(zip(keys, row, strict=True)) for row in batched(cells, len(keys))]


def batched(values, n):
    return [values[k : k + n] for k in range(0, len(values), n)]


def make_report(folder, *options):
    """Run the command on a folder; its exit code and the page."""
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    args = parser.parse_args([str(folder), *map(str, options)])
    code = report.run(args)
    return code, (args.out or folder / "report.html").read_text("utf-8")
