"""The digest of the sources of a kernel. The digest shows whether a compiled kernel on disk is
outdated.

Numba itself checks only the source file in which a kernel is defined: its name, time and size. But
a kernel inlines functions and uses table layouts from other modules. If these functions and layouts
change in an upgrade, Numba would load an old kernel that reads columns at the wrong place. So the
names of the cache files (`cache`) contain a digest of all modules that the kernel's module imports,
directly or indirectly, and of the modules that compile the kernel.

The digest is calculated from the current files. If an upgrade replaces files while a process runs,
the process would compile old code and save it under the digest of the new files. `are_loaded`
returns whether the files are still those that the process imported.
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
"""Modules that most modules of kernels import, but that do not affect compiled code. Without this
exception, each new error code would cause all kernels to be compiled again.
"""

# Only imports at the start of a line count. Imports for type checkers are indented.
_IMPORT: Final = re.compile(
    rf"^(?:from ({_PACKAGE}[\w.]*) import|import ({_PACKAGE}[\w.]+))", re.MULTILINE
)


@cache
def sources_digest(module: str, path: str = "") -> str:
    """Return the digest of the sources of a module and of all modules of this package that it
    imports.

    Args:
        module: full name of the module.
        path: path of its source file, if the module is of another package.
    """
    whole = hashlib.sha256()
    for name in sorted(_sources(module, path)):
        whole.update(name.encode() + _source(name).digest)
    return whole.hexdigest()[:_DIGITS]


@cache
def are_loaded(module: str, path: str = "") -> bool:
    """Return whether the files of a digest have not changed since this process imported them.

    Args:
        module, path: as in `sources_digest`.
    """
    changed = max(_source(name).changed_at for name in _sources(module, path))
    if not module.startswith(f"{_PACKAGE}."):
        changed = max(changed, Path(path).stat().st_ctime)
    return changed < LOADED_AT


def _sources(module: str, path: str) -> set[str]:
    """Return the modules of this package whose sources affect the kernels of a module."""
    sources = {module, *imported(module), MAKERS, *imported(MAKERS)}
    if module.startswith(f"{_PACKAGE}."):
        return sources
    named = _named_in(Path(path).read_text("utf-8")) - _NO_PART
    return sources.union(named, *map(imported, named))


def imported(module: str) -> set[str]:
    """Return the modules of this package that `module` imports, directly or indirectly, without the
    modules in `_NO_PART`.
    """
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = _source(waiting.pop()).imports - found - _NO_PART
        found |= new
        waiting += new
    return found


class _Source(NamedTuple):
    """The facts about a source file that this module needs.

    Attributes:
        changed_at: Unix time at which the file was changed or copied to its place.
    """

    digest: bytes
    imports: frozenset[str]
    changed_at: float


@cache
def _source(module: str) -> _Source:
    """Read the source of a module. A module outside the folder of the package counts as empty."""
    package, _, rest = module.partition(".")
    path = (_ROOT / rest.replace(".", "/")).with_suffix(".py")
    if package != _PACKAGE or not path.is_file():
        return _Source(hashlib.sha256().digest(), frozenset(), 0.0)
    text = path.read_bytes()
    return _Source(hashlib.sha256(text).digest(), _named_in(text.decode()), path.stat().st_ctime)


def _named_in(text: str) -> frozenset[str]:
    """Return the modules of this package that are imported in a source text."""
    return frozenset(one or other for one, other in _IMPORT.findall(text))
