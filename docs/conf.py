"""Sphinx settings of the manual; the pages of datasets, models, metrics and protocols are made from the repository itself."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "CardioBench"
author = "The CardioBench authors"
release = version = installed_version("cardiobench")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "generate_pages"]
exclude_patterns = ["_build", "_static", "_templates"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# Cards are also pages of the Hub, where headings and links follow other rules.
suppress_warnings = ["myst.header", "myst.xref_missing"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_mock_imports = []
nitpicky = False
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "navbar_center": []}
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_sidebars = {"**": ["sections"]}
copybutton_prompt_text = "$ "
html_context = {"default_mode": "auto"}
html_title = "CardioBench"
