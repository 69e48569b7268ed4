"""The syntax trees of the package's modules, for tests that look for what all of them do.

To parse all modules takes a second. A name stands in the text of a module whose tree has it, so
only modules with such a text are parsed.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import olr_pg

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(olr_pg.__file__).parent


def modules_with(text: str) -> Iterator[tuple[str, ast.Module]]:
    """The place in the package, and the tree, of each module in which the pattern `text` occurs."""
    pattern = re.compile(text)
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text("utf-8")
        if pattern.search(source):
            yield path.relative_to(PACKAGE).as_posix(), ast.parse(source)
