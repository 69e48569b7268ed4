"""Packs of compiled kernels: what one machine compiled runs on another; nothing else is taken."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import olr_pg
from olr_pg.errors import Code, OlrPgError
from olr_pg.kernels.pack import read_pack, write_pack

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = b"olr-pg kernels\n"
KERNEL = """
from olr_pg.kernels.compile import kernel

@kernel
def doubled(n: int) -> int:
    return n * 2
"""
COMPILE = """
from pathlib import Path
from olr_pg.kernels.pack import write_pack
from olr_pg.kernel_test_code import doubled
assert doubled(4) == 8
print(write_pack(Path("made.pack")))
"""
TAKE = """
from pathlib import Path
from olr_pg.kernels.pack import read_pack
from olr_pg.kernel_test_code import doubled
from olr_pg.errors import OlrPgError
try:
    print(read_pack(Path("made.pack")), doubled(4), sum(doubled.stats.cache_misses.values()))
except OlrPgError as error:
    print(error)
"""
SPECIAL = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE)


@pytest.fixture
def called(tmp_path: Path) -> Callable[..., str]:
    """Run code in a package of one kernel, with a cache that is named."""
    package = tmp_path / "olr_pg"
    package.mkdir()
    for name in ("kernels", "files"):
        shutil.copytree(Path(olr_pg.__file__).parent / name, package / name)
    shutil.copy(Path(olr_pg.__file__).parent / "errors.py", package)
    (package / "__init__.py").touch()
    (package / "kernel_test_code.py").write_text(KERNEL)

    def call(code: str, cache: str, **changed: str) -> str:
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(tmp_path / cache),
            "PYTHONPATH": str(tmp_path),
            **changed,
        }
        environment.pop("NUMBA_DISABLE_JIT", None)
        found = subprocess.run(
            [sys.executable, "-B", "-c", code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        return found.stdout.strip()

    return call


def kernel_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.nb?"))


def test_what_one_cache_compiled_another_takes_and_compiles_nothing(
    called: Callable[..., str], tmp_path: Path
) -> None:
    assert called(COMPILE, "one") == "1"
    assert called(TAKE, "other") == "1 8 0"
    assert kernel_files(tmp_path / "one") == kernel_files(tmp_path / "other")
    assert len(kernel_files(tmp_path / "other")) == 2


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"NUMBA_CPU_NAME": "generic"}, "the pack is for another processor: "),
        (
            {"NUMBA_CPU_FEATURES": "+sse2"},
            "the pack is for other processor features: only in the pack ",
        ),
    ],
)
def test_a_pack_of_another_processor_is_refused(
    called: Callable[..., str], tmp_path: Path, changed: dict[str, str], words: str
) -> None:
    called(COMPILE, "one")
    answer = called(TAKE, "other", **changed)
    assert "OLR-01221" in answer
    assert words in answer
    assert kernel_files(tmp_path / "other") == []


def test_a_pack_of_other_sources_is_refused(called: Callable[..., str], tmp_path: Path) -> None:
    called(COMPILE, "one")
    (tmp_path / "olr_pg" / "kernel_test_code.py").write_text(KERNEL + "# changed\n")
    answer = called(TAKE, "other")
    assert "OLR-01221" in answer
    assert "the pack is for other sources of olr_pg: " in answer
    assert kernel_files(tmp_path / "other") == []


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A pack of this machine with the files of a few kernels; all of them take long to pack."""
    path = tmp_path_factory.mktemp("pack") / "k.pack"
    write_pack(path)
    return packed(members(path)[:5])


@pytest.fixture
def made(small: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "k.pack"
    path.write_bytes(small)
    return path


@pytest.mark.parametrize("key", ["format", "machine", "python", "numba", "llvm"])
def test_a_pack_of_another_version_is_refused(made: Path, key: str) -> None:
    (name, manifest), *rest = members(made)
    changed = {**json.loads(manifest), key: "another"}
    made.write_bytes(packed([(name, json.dumps(changed).encode()), *rest]))
    with pytest.raises(OlrPgError, match="another in the pack") as caught:
        read_pack(made)
    assert caught.value.code == Code.KERNEL_PACK_UNFIT


def test_a_pack_that_was_cut_off_anywhere_is_refused(made: Path) -> None:
    whole = made.read_bytes()
    head = len(TITLE)
    for size in (0, 5, head, head + 30, head + 65, len(whole) // 2, len(whole) - 1):
        made.write_bytes(whole[:size])
        refuses(made)


def test_a_pack_with_a_changed_byte_is_refused(made: Path) -> None:
    whole = made.read_bytes()
    head = len(TITLE)
    for place in (0, head + 3, head + 64, head + 70, len(whole) - 1):
        changed = bytearray(whole)
        changed[place] ^= 1
        made.write_bytes(changed)
        refuses(made)


def test_what_is_no_pack_is_refused(tmp_path: Path) -> None:
    refuses(tmp_path / "missing")
    refuses(tmp_path)
    file = tmp_path / "file"
    digest = hashlib.sha256(b"no tar").hexdigest().encode()
    for content in (
        b"hello",
        TITLE + digest + b"\n" + b"no tar",
        packed([]),
        packed([("manifest.json", b"[]")]),
        packed([("manifest.json", b"\xff")]),
    ):
        file.write_bytes(content)
        refuses(file)


@pytest.mark.parametrize(
    "name",
    [
        "../evil.nbi",
        "/tmp/evil.nbi",
        "olr_pg.redo.integers/../../evil.nbi",
        "olr_pg.redo.integers/evil.py",
        "olr_pg.redo.integers/evil.nbi",
        "olr_pg.missing/evil-1.py311-0.nbi",
        "manifest.json",
        "",
    ],
)
def test_a_file_that_belongs_to_no_kernel_is_refused(made: Path, name: str) -> None:
    made.write_bytes(packed([*members(made), (name, b"x")]))
    refuses(made, "belongs to no kernel")


@pytest.mark.parametrize("kind", SPECIAL)
def test_a_link_or_a_directory_is_refused(made: Path, kind: bytes) -> None:
    made.write_bytes(packed([*members(made), ("olr_pg.redo.integers/link.nbi", kind)]))
    refuses(made, "is not a regular file")


def test_a_pack_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught:
        write_pack(tmp_path / "missing" / "k.pack")
    assert caught.value.code == Code.OUTPUT_UNWRITABLE


def refuses(path: Path, words: str | None = None) -> None:
    with pytest.raises(OlrPgError, match=words) as caught:
        read_pack(path)
    assert caught.value.code == Code.KERNEL_PACK_DAMAGED


def members(path: Path) -> list[tuple[str, Any]]:
    body = path.read_bytes()[len(TITLE) + 65 :]
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        files = ((one.name, archive.extractfile(one)) for one in archive)
        return [(name, file.read()) for name, file in files if file is not None]


def packed(contents: list[tuple[str, Any]]) -> bytes:
    """A pack with these members, its digest right; content that is a tar's type has this type."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in contents:
            member = tarfile.TarInfo(name)
            if content in SPECIAL:
                member.type, member.linkname = content, "/etc/passwd"
                archive.addfile(member)
                continue
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    body = gzip.compress(made.getvalue())
    return TITLE + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
