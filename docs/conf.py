"""How Sphinx builds the pages: `make docs`, or sphinx-build -W docs out/docs."""

import os
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_tools"), str(HERE.parent / "examples")]
os.environ["REVEALED_PICTURES"] = "pictures"  # where examples save theirs, beside the scripts
os.environ.setdefault("MPLBACKEND", "agg")

project = "revealed"
author = "The revealed authors"
copyright = "the revealed authors, MIT license"
release = metadata.version("revealed")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
    "docstrings",
    "parts",
    "played",
]
exclude_patterns = ["_tools", "_static", "generated/parts", "generated/played", "generated/scripts"]
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence", "attrs_inline"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
html_math_renderer = "mathml"
smartquotes_action = "D"  # dashes alone: with other quotes, basis="true" would be no Python
nitpicky = False

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_inherit_docstrings = False

sphinx_gallery_conf = {
    "examples_dirs": "generated/scripts",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"[/\\]plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "min_reported_time": 3600,
    "image_scrapers": ("matplotlib",),
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 448),
    "write_computation_times": False,
}

html_theme = "furo"
html_title = "revealed"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_extra_path = ["generated/parts/extra"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0059a3",
        "color-brand-content": "#0059a3",
        "color-brand-visited": "#5b4a99",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc4ff",
        "color-brand-content": "#7cc4ff",
        "color-brand-visited": "#b9aef0",
    },
}
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"
