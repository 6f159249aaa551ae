"""How Sphinx builds the manual: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import notebooks  # noqa: E402  beside this file
from docutils import nodes  # noqa: E402
from docutils.utils.math.latex2mathml import tex2mathml  # noqa: E402
from sphinx import addnodes  # noqa: E402

import mipfs  # noqa: E402  after the path

project, author, release = "mipfs", "mipfs contributors", mipfs.__version__
copyright = author
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser", "formulations_page"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "notebooks"]

html_theme = "furo"
html_title = f"mipfs {release}"
html_show_sphinx = False
html_static_path = ["style"]
html_css_files = ["manual.css"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
html_math_renderer = "mathml"
myst_heading_anchors = 4

default_role = "code"  # one backtick in a docstring is code, as in numpydoc's own
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say shapes and ranges
autodoc_inherit_docstrings = False
napoleon_google_docstring = False
napoleon_use_ivar = True

# `{include}` of CONTRIBUTING.md brings headings of its own depth.
suppress_warnings = ["myst.header"]


def _escaped(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """|x|, w* and the like in docstrings are mathematics, not markup; code and examples stay as they are."""
    for k, line in enumerate(lines):
        if ">>>" in line:
            continue
        parts = re.split(r"(``.*?``|`[^`]*`|:\w+:)", line)
        parts[::2] = [re.sub(r"(?<!\\)([|*])", r"\\\1", part) for part in parts[::2]]
        lines[k] = "".join(parts)


def _mathml(writer: Any, node: Any) -> None:
    """An equation as MathML, which browsers set by themselves: nothing is fetched, with a network or without."""
    is_block = isinstance(node, nodes.math_block)
    made = tex2mathml(node.astext(), as_block=is_block)
    if is_block:  # the theme lets an equation scroll that is taller than its line
        made = made.replace("<math ", '<math style="padding: 0.5em 0" ', 1)
    writer.body.append(made)
    raise nodes.SkipNode


def _named(app: Any, domain: str, kind: str, node: Any) -> None:
    """`mipfs.drivers.branch.Options` is shown by its driver's name: all of them are called Options."""
    for described in node.parent.findall(addnodes.desc_signature):
        module = described.get("module", "")
        if module.startswith("mipfs.drivers.") and described.get("fullname") == "Options":
            for part in described.findall(addnodes.desc_addname):
                part.replace_self(addnodes.desc_addname("", f"{module.rsplit('.', 1)[-1]}: "))
            for keyword in described.findall(addnodes.desc_annotation):
                keyword.parent.remove(keyword)


def setup(app: Any) -> None:
    """What the manual needs beyond extensions."""
    notebooks.write(HERE / "notebooks")  # before the sources are looked for
    app.connect("object-description-transform", _named)
    app.connect("autodoc-process-docstring", _escaped, priority=100)  # before napoleon reads them
    app.add_html_math_renderer("mathml", (_mathml, None), (_mathml, None))
