"""The digest of the sources that a kernel is made of: it says when a compiled one is out of date.

Numba keeps a kernel under the name and the time of its own source file. But what it inlines, and
the layouts that it was compiled for, come from other modules: after an upgrade a kernel would be
found that reads columns where they are no longer. So its files (`cache`) carry a digest of every
module that its own one imports, directly or not, and of what has it compiled.

The digest is of the files as they are now. A process that goes on while an upgrade replaces them
would keep code that was compiled of the old ones under the digest of the new ones. `are_loaded`
says whether the files are still those that the process imported.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from olr_pg.kernels.late_dispatcher import LOADED_AT, MAKERS

_ROOT: Final = Path(__file__).resolve().parent.parent
_PACKAGE: Final = __name__.partition(".")[0]
_DIGITS: Final = 12

_NO_PART: Final = frozenset({f"{_PACKAGE}.errors"})
"""Modules that no kernel takes anything from, though nearly all of theirs import them: a new error
code would have every kernel compiled anew."""

# At the start of a line: what only type checkers import is indented.
_IMPORT: Final = re.compile(
    rf"^(?:from ({_PACKAGE}[\w.]*) import|import ({_PACKAGE}[\w.]+))", re.MULTILINE
)


@cache
def sources_digest(module: str, path: str = "") -> str:
    """Digest the sources of a module and of all that it imports of this package.

    Args:
        module: its full name.
        path: of its source, where it is of another package.
    """
    whole = hashlib.sha256()
    for name in sorted(_sources(module, path)):
        whole.update(name.encode() + _source(name).digest)
    return whole.hexdigest()[:_DIGITS]


@cache
def are_loaded(module: str, path: str = "") -> bool:
    """Tell whether the files of a digest have not changed since this process imported them.

    Args:
        module, path: as of `sources_digest`.
    """
    changed = max(_source(name).changed_at for name in _sources(module, path))
    if not module.startswith(f"{_PACKAGE}."):
        changed = max(changed, Path(path).stat().st_ctime)
    return changed < LOADED_AT


def _sources(module: str, path: str) -> set[str]:
    """Collect the modules of this package whose sources a kernel is made of."""
    sources = {module, *imported(module), MAKERS, *imported(MAKERS)}
    if module.startswith(f"{_PACKAGE}."):
        return sources
    named = _named_in(Path(path).read_text("utf-8")) - _NO_PART
    return sources.union(named, *map(imported, named))


def imported(module: str) -> set[str]:
    """Collect the modules of this package that `module` imports, directly or not, if they count."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = _source(waiting.pop()).imports - found - _NO_PART
        found |= new
        waiting += new
    return found


class _Source(NamedTuple):
    """The part of a module's source that counts.

    Attributes:
        changed_at: when its file was written, or put there: Unix time.
    """

    digest: bytes
    imports: frozenset[str]
    changed_at: float


@cache
def _source(module: str) -> _Source:
    """Read a module's source; it is as good as empty outside the package's folder."""
    package, _, rest = module.partition(".")
    path = (_ROOT / rest.replace(".", "/")).with_suffix(".py")
    if package != _PACKAGE or not path.is_file():
        return _Source(hashlib.sha256().digest(), frozenset(), 0.0)
    text = path.read_bytes()
    return _Source(hashlib.sha256(text).digest(), _named_in(text.decode()), path.stat().st_ctime)


def _named_in(text: str) -> frozenset[str]:
    """Return the modules of this package that a source imports."""
    return frozenset(one or other for one, other in _IMPORT.findall(text))
