"""``olr-pg dictionary export``: its arguments reach the export, its errors the terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path


def test_an_offline_source_has_none_to_export(
    cli: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    source = {"kind": "offline", "dictionary": "d.json", "logs": "archive"}
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"source": source}))
    done = cli("dictionary", "export", "--config", path, "--out", tmp_path / "out.json")
    assert done.returncode == 2
    assert "OLR-01093" in done.stderr
    assert done.stdout == ""


def test_an_scn_is_no_negative_number(
    cli: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = cli("dictionary", "export", "--config", "c", "--out", tmp_path / "x", "--scn", "-1")
    assert done.returncode == 2
    assert "--scn" in done.stderr
