"""Writes the small generated logs that `olr_pg.replicator.kernel_warmup` decodes.

    uv run python tools/warmup_log.py

The package carries them, so that production needs nothing of the simulator. They have to pass
every kernel of the way once: `tests/replicator/test_kernel_warmup.py` and
`tests/test_kernel_compilation.py` say when they do not. That may be whenever the simulator draws
something else for these seeds: write them again then.
"""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path
from typing import Final

from olr_pg.simulator.simulation import simulate

ROOT: Final = Path(__file__).resolve().parent.parent
DATA: Final = ROOT / "olr_pg" / "replicator" / "data"

ARCHIVES: Final = {
    "warmup.tar.xz": (1, "random", 20_000),
    "warmup_lobs.tar.xz": (5, "lobs", 20_000),
    "warmup_rare.tar.xz": (6, "random", 200_000),  # undo in parts, LOBs whose pages are listed
}
"""Seed, workload and bytes; every start decodes the first one, `olr-pg prepare` all of them."""


def main() -> None:
    """Generate the logs, and pack them with their dictionary."""
    for name, made in ARCHIVES.items():
        _pack(DATA / name, *made)


def _pack(path: Path, seed: int, workload: str, size: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulate(seed, folder, workload=workload, size=size)
        path.parent.mkdir(exist_ok=True)
        with tarfile.open(path, "w:xz") as archive:
            for file in [folder / "dictionary.json", *sorted((folder / "logs").iterdir())]:
                archive.add(file, str(file.relative_to(folder)), filter=_without_owner)


def _without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Make the same archive of the same logs, whoever packs them, and when."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    info.mode = 0o644
    return info


if __name__ == "__main__":
    main()
