"""Formulas as MathML, which browsers draw themselves: pages load nothing from anywhere.

docutils brings the converter; this makes it a math renderer of Sphinx.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
BARE = {
    "<mo>⟨</mo>": "prefix",
    "<mo>⟩</mo>": "postfix",
    "<mo>{</mo>": "prefix",
    "<mo>}</mo>": "postfix",
    '<mo class="mathopen">|</mo>': "prefix",  # \lvert
    "<mo>|</mo>": "postfix",  # \rvert; pages write no single bar
}
"""Brackets that browsers would stretch, and space like operators, as the converter leaves them."""


def visit_math(self: Any, node: nodes.math) -> None:
    """A formula within a line."""
    self.body.append(_converted(node.astext(), node, block=False))
    raise nodes.SkipNode


def visit_displaymath(self: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own, which scrolls where the screen is narrow."""
    text = _converted(node.astext(), node, block=True)
    self.body.append(f'<div class="formula">{text}</div>\n')
    raise nodes.SkipNode


def _converted(text: str, node: nodes.Element, *, block: bool) -> str:
    try:
        told = tex2mathml(text, as_block=block)
    except MathError as error:
        LOGGER.warning("formula %r: %s", text, error, location=node)
        return ""
    for bracket, form in BARE.items():
        mark = bracket[bracket.index(">") + 1]
        told = told.replace(bracket, f'<mo form="{form}" stretchy="false">{mark}</mo>')
    return told


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer(
        "mathml", inline_renderers=(visit_math, None), block_renderers=(visit_displaymath, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
