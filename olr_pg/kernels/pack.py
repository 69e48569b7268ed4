"""Writes and reads packs of compiled kernels. With a pack, other machines of the same kind need not
compile the kernels.

The first line of a pack is its format, the second line the SHA-256 of the rest. The rest is a
gzipped tar file. The first member of the tar file contains the processor, the versions and the
sources for which the kernels were compiled. The other members are Numba's files for each kernel
(`cache`); their names begin with the module of the kernel. The SHA-256 detects damage, but it does
not protect against an attacker: anyone who can write a pack can make its users run any code.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import llvmlite.binding as llvm
import numba

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.durable import sync_directory
from olr_pg.files.owned import written_whole
from olr_pg.kernels.cache import KernelCache, sources_digest
from olr_pg.kernels.late_dispatcher import LateDispatcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PACKAGE: Final = f"{__name__.partition('.')[0]}."
_FORMAT: Final = 1
_TITLE: Final = b"olr-pg kernels\n"
_HEADER_BYTES: Final = len(_TITLE) + 2 * hashlib.sha256().digest_size + 1
_MANIFEST: Final = "manifest.json"
_INDEX, _DATA = ".nbi", ".nbc"
_COMPRESSION: Final = 6

_WORDS: Final = {
    "format": "another format of packs",
    "machine": "another kind of machine",
    "processor": "another processor",
    "features": "other processor features",
    "python": "another Python",
    "numba": "another Numba",
    "llvm": "another LLVM",
    "sources": "other sources of olr_pg",
}
"""The facts that must be the same on both machines, with the words for a difference, in the order
in which differences are reported.
"""


def write_pack(path: Path) -> int:
    """Write the compiled kernels of all imported modules of this package to a pack.

    Returns:
        The number of kernels in the pack.

    Raises:
        OlrPgError: 1210 if the pack cannot be written.
    """
    caches = _caches()
    indexes = [(module, one.index) for module, one in caches if one.index.exists()]
    with io.BytesIO() as packed:
        with (
            gzip.GzipFile("", "wb", _COMPRESSION, packed, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w") as archive,
        ):
            _add(archive, _MANIFEST, json.dumps(_kind(), indent=1).encode())
            for module, index in indexes:
                # An index names its data files, so it is written after them.
                for file in (*sorted(index.parent.glob(f"{index.stem}.*{_DATA}")), index):
                    _add(archive, f"{module}/{file.name}", file.read_bytes())
        body = packed.getvalue()
    try:
        with written_whole(path) as out:
            out.write(_TITLE + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    except OSError as error:
        raise OlrPgError(Code.OUTPUT_UNWRITABLE, system_reason(error), path=str(path)) from error
    return len(indexes)


def read_pack(path: Path) -> int:
    """Copy the kernels of a pack to the folders in which this installation looks for compiled
    kernels.

    The whole pack is checked before the first file is written.

    Returns:
        The number of kernels in the pack.

    Raises:
        OlrPgError: 1220 if the file is not a pack or is damaged; 1221 if the pack was made for
            another processor, other versions or other sources; 1210 if the kernels cannot be
            written.
    """
    members = list(_members(path))
    name, manifest = members[0] if members else ("", b"")
    if name != _MANIFEST:
        raise _damaged(path, "the first member is not the manifest")
    _check_kind(path, manifest)
    places: dict[str, dict[str, Path]] = defaultdict(dict)
    for module, one in _caches():
        places[module][one.index.stem] = one.index.parent
    files = [(_place(path, name, places), content) for name, content in members[1:]]
    try:
        for place, content in files:
            place.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(place) as out:
                out.write(content)
        for directory in {place.parent for place, _ in files}:
            sync_directory(directory)
    except OSError as error:
        raise OlrPgError(
            Code.OUTPUT_UNWRITABLE, system_reason(error), path=str(error.filename or place)
        ) from error
    return sum(place.suffix == _INDEX for place, _ in files)


def _caches() -> list[tuple[str, KernelCache]]:
    """Return the module and the cache of each kernel of this package."""
    caches = dict[tuple[str, Path], KernelCache]()
    for name, module in list(sys.modules.items()):
        if name.startswith(_PACKAGE):
            for one in vars(module).values():
                found = getattr(one.dispatcher, "_cache", None) if _is_kernel(one) else None
                if isinstance(found, KernelCache):
                    caches[one.__module__, found.index] = found
    return [(module, caches[module, index]) for module, index in sorted(caches)]


def _is_kernel(value: Any) -> TypeGuard[LateDispatcher]:
    return isinstance(value, LateDispatcher) and value.__module__.startswith(_PACKAGE)


def _kind() -> dict[str, Any]:
    """Return the facts on which compiled kernels depend: a value for each key of `_WORDS`."""
    sources = hashlib.sha256()
    for module in sorted({module for module, _ in _caches()}):
        sources.update(f"{module} {sources_digest(module)}\n".encode())
    config: Any = numba.config
    features = config.CPU_FEATURES or llvm.get_host_cpu_features().flatten()
    return {
        "format": _FORMAT,
        "machine": llvm.get_process_triple(),
        "processor": config.CPU_NAME or llvm.get_host_cpu_name(),
        "features": sorted(one[1:] for one in features.split(",") if one.startswith("+")),
        "python": sys.implementation.cache_tag,
        "numba": numba.__version__,
        "llvm": ".".join(map(str, llvm.llvm_version_info)),
        "sources": sources.hexdigest(),
    }


def _check_kind(path: Path, manifest: bytes) -> None:
    """Raise an error if a pack is for another kind of machine or other versions. The error contains
    the difference.
    """
    try:
        packed = json.loads(manifest)
    except ValueError:
        packed = None
    if not isinstance(packed, dict):
        raise _damaged(path, "the manifest is not a JSON object")
    own = _kind()
    for key, words in _WORDS.items():
        if packed.get(key) != own[key]:
            difference = _difference(key, packed.get(key), own[key])
            raise OlrPgError(
                Code.KERNEL_PACK_UNFIT, f"the pack is for {words}: {difference}", path=str(path)
            )


def _difference(key: str, packed: Any, own: Any) -> str:
    if key == "features" and isinstance(packed, list):
        more, less = sorted({*map(str, packed)} - {*own}), sorted({*own} - {*map(str, packed)})
        parts = (("only in the pack", more), ("only on this machine", less))
        return "; ".join(f"{where} {', '.join(names)}" for where, names in parts if names)
    shown = 12 if key == "sources" else 80
    return f"{str(packed)[:shown]} in the pack, {str(own)[:shown]} here"


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Check the digest of a pack, then yield the names and contents of its members."""
    try:
        whole = path.read_bytes()
    except OSError as error:
        raise _damaged(path, system_reason(error)) from error
    header, body = whole[:_HEADER_BYTES], whole[_HEADER_BYTES:]
    if not header.startswith(_TITLE):
        raise _damaged(path, "the file is not a pack of kernels")
    if header != _TITLE + hashlib.sha256(body).hexdigest().encode() + b"\n":
        raise _damaged(
            path,
            "the SHA-256 of the file does not match its contents, so it was truncated or changed",
        )
    try:
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isreg() else None
                if file is None:
                    raise _damaged(path, f"{member.name} is not a regular file")
                yield member.name, file.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise _damaged(path, system_reason(error)) from error


def _place(path: Path, name: str, places: Mapping[str, Mapping[str, Path]]) -> Path:
    """Return the path to which a member is written: it is beside the other cache files of its
    kernel. Raise an error if the kernel does not belong to this package.
    """
    module, _, file = name.partition("/")
    stem, suffix = Path(file).stem, Path(file).suffix
    if suffix == _DATA:
        stem, _, number = stem.rpartition(".")
        suffix = _INDEX if number.isdigit() else ""
    directory = places.get(module, {}).get(stem)
    if directory is None or suffix != _INDEX or "/" in file:
        raise _damaged(path, f"{name} belongs to no kernel")
    return directory / file


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    # The pack contains no times and owners, so the same kernels give the same pack.
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _damaged(path: Path, why: str) -> OlrPgError:
    return OlrPgError(Code.KERNEL_PACK_DAMAGED, why, path=str(path))
