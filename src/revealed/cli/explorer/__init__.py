"""`revealed explore`: a page in one's own browser that shows a model sample by sample."""

from .server import serve
from .views import Explorer

__all__ = ["Explorer", "serve"]
