"""``olr-pg prepare``: kernels that are compiled once are taken by another cache as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.replicator.kernel_warmup import unpack_logs

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Start

    Cli = Callable[..., subprocess.CompletedProcess[str]]


def test_what_one_cache_exports_another_imports_and_a_decode_compiles_nothing(
    start_cli: Start, tmp_path: Path
) -> None:
    def run(*arguments: object, **changes: str) -> str:  # Numba reads its environment but once
        process = start_cli(*arguments, **changes)
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        return output

    pack, cache = tmp_path / "kernels.pack", {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    run("prepare", "--no-java", "--export", pack)
    assert " imported from " in run("prepare", "--no-java", "--import", pack, **cache)
    before = kernel_files(tmp_path)
    assert len(before) > 100
    unpack_logs(tmp_path / "source")
    source = tmp_path / "source"
    decoded = run("decode", "-d", source / "dictionary.json", source / "logs", **cache)
    assert '"op":"commit"' in decoded
    assert kernel_files(tmp_path) == before


def test_a_damaged_pack_ends_with_the_code_of_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    pack = tmp_path / "kernels.pack"
    pack.write_text("nothing")
    refused = cli("prepare", "--no-java", "--import", pack)
    assert refused.returncode == 2
    assert "OLR-01220" in refused.stderr
    assert "olr-pg prepare --export FILE" in refused.stderr


def test_a_pack_is_written_or_read_but_not_both(cli: Cli, tmp_path: Path) -> None:
    both = cli("prepare", "--export", tmp_path / "a", "--import", tmp_path / "b")
    assert both.returncode == 2
    assert "cannot be used together" in both.stderr


def kernel_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.nb?"))
