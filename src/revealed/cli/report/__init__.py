"""One page about a model for people who will not run it: what was learned, and how far to trust it.

`content` computes, `page` writes. The page is one file that loads nothing.
"""

from .content import Content as Content
from .content import gather as gather
from .page import render as render
