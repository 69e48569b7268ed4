"""The pages as a site, with Sphinx: `uv run sphinx-build -W --keep-going -c docs . site`.

The pages stay as they read in the repository. What comes first and what belongs together on the
site is what the index says (README.md beside this file): each of its paragraphs becomes a part of
the navigation. With -W a link that leads nowhere, a heading that is not there and a page that the
index leaves out are errors. Nothing is fetched, neither to build the site nor to read it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "olr_pg"
copyright = "the olr_pg authors"  # noqa: A001 - Sphinx's name
extensions = ["myst_parser"]

# From the root of the repository, so that links to its files are the same here and there.
root_doc = "docs/README"
include_patterns = ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/**.md"]
exclude_patterns = [".venv", ".git", "node_modules", "site", "tests", "olr_pg"]
source_suffix = {".md": "markdown"}

myst_heading_anchors = 4
nitpicky = True
# Of a configuration mostly a part is shown, which is no document.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "olr_pg"
html_show_sphinx = False
html_copy_source = False

_PART: Final = re.compile(
    r"^\*\*(?P<title>[^*]+?)\.\*\*(?P<links>.*?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL
)
_LINK: Final = re.compile(r"\]\((?P<page>[\w./-]+)\.md\)")


def navigation(index: str) -> str:
    """Return the parts of the site's navigation, from the text of the index."""
    seen: set[str] = set()
    parts = []
    for part in _PART.finditer(index):
        pages = [page for page in _LINK.findall(part["links"]) if page not in seen]
        seen.update(pages)
        lines = "\n".join(pages)
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {part['title']}\n\n{lines}\n```\n")
    return "\n".join(parts)


def _navigate(_app: Sphinx, name: str, source: list[str]) -> None:
    if name == root_doc:
        source[0] += "\n" + navigation(source[0])


def setup(app: Sphinx) -> None:
    """Let Sphinx make the navigation from the index."""
    app.connect("source-read", _navigate)
