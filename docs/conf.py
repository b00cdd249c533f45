"""The site's configuration; `make docs` (scripts/build_site.py) puts the sources into build/site/source first."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import edl_labs  # noqa: E402

project = "edl_labs"
author = "The edl_labs authors"
version = release = edl_labs.__version__
project_copyright = f"2026, the edl_labs authors. Version {release}, MIT licence"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "api_pages",
    "mathml",
    "pictures",
]
nitpicky = True
# Annotations name types of other packages; the site opens without the web, so that nothing of theirs is linked.
nitpick_ignore_regex = [("py:.*", r".*")]
exclude_patterns = ["_ext", "_static", "files"]
default_role = "code"  # docstrings are read as text first: single backquotes are code in them
toc_object_entries_show_parents = "hide"
add_module_names = False  # the page is called after the module

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Pages run their cells once; build/site/cache keeps what came out until a page changes.
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "cache")
nb_execution_in_temp = True  # a lab keeps its points beside itself, and would go on where an earlier build stopped
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "remove"
# No live widget without a kernel: the still picture beside it is shown, and no script of another host is asked for.
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
nb_render_image_options = {"align": "left"}

# A check's score travels in an output of its own beside the text and HTML that are shown; an annotation may name a
# class (`Diagnosis`) of which two modules have one, and leads to the first.
suppress_warnings = ["mystnb.unknown_mime_type", "ref.python"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "pydata_sphinx_theme"
html_title = "edl_labs"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "edl_labs"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars: dict[str, list[str]] = {"*": []}  # pages at the top have none below them
html_context = {"default_mode": "auto"}
copybutton_selector = "div:not(.output) > div.highlight pre"  # what a cell gave is not to be copied
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
