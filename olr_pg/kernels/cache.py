"""The place of compiled kernels on disk, and the digest that says when they are out of date.

Numba keeps a kernel under the name and the time of its own source file. But what it inlines, and
the layouts that it was compiled for, come from other modules: after an upgrade a kernel would be
found that reads columns where they are no longer. So its files carry a digest of every module that
its own one imports, directly or not, and of the decorators.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from numba.core.caching import IndexDataCacheFile, NullCache

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


def key_by_sources(dispatcher: Any) -> None:
    """Let a kernel's files on disk be found only while no source that made them has changed.

    Args:
        dispatcher: of Numba; left as it is without a cache. Its function may be of another package:
            what that one's module imports of this package counts, Numba looks at the module itself.
    """
    cache, function = dispatcher._cache, dispatcher.py_func
    if isinstance(cache, NullCache):
        return
    digest = sources_digest(function.__module__, function.__code__.co_filename)
    name = f"{cache._impl.filename_base}-{digest}"
    make: Any = _CacheFile
    cache._cache_file = make(cache._cache_path, name, digest)


def is_on_disk(kernel: Any) -> bool:
    """Tell whether a kernel was compiled from these sources, for whatever types and processor."""
    cache = getattr(kernel, "_cache", NullCache())  # NUMBA_DISABLE_JIT: a function
    return not isinstance(cache, NullCache) and Path(cache._cache_file._index_path).exists()


class _CacheFile(IndexDataCacheFile):
    """Numba's, but an index that names types which are no longer there is as good as none.

    A kernel's argument types may be of modules that its own one does not import.
    """

    def _load_index(self) -> Any:
        load: Any = super()._load_index
        try:
            return load()
        except (AttributeError, ImportError):
            return {}


@cache
def sources_digest(module: str, path: str = "") -> str:
    """Digest the sources of a module and of all that it imports of this package.

    Args:
        module: its full name.
        path: of its source, where it is of another package.
    """
    sources = {module, f"{_PACKAGE}.kernels.compile", *imported(module)}
    if not module.startswith(f"{_PACKAGE}."):
        named = _named_in(Path(path).read_text("utf-8")) - _NO_PART
        sources = sources.union(named, *map(imported, named))
    whole = hashlib.sha256()
    for name in sorted(sources):
        whole.update(name.encode() + _source(name).digest)
    return whole.hexdigest()[:_DIGITS]


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
    """The part of a module's source that counts."""

    digest: bytes
    imports: frozenset[str]


@cache
def _source(module: str) -> _Source:
    """Read a module's source; it is as good as empty outside the package's folder."""
    package, _, rest = module.partition(".")
    path = (_ROOT / rest.replace(".", "/")).with_suffix(".py")
    text = path.read_bytes() if package == _PACKAGE and path.is_file() else b""
    return _Source(hashlib.sha256(text).digest(), _named_in(text.decode()))


def _named_in(text: str) -> frozenset[str]:
    """Return the modules of this package that a source imports."""
    return frozenset(one or other for one, other in _IMPORT.findall(text))
