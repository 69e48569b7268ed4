from __future__ import annotations

import os
import subprocess
import sys

_PROGRAM = """
import tempfile
from pathlib import Path
from olr_pg.redo import extract
from olr_pg.replicator.warm import warm_behind_extraction, warm_kernels
from olr_pg.simulator.simulate import simulate
from olr_pg.transactions import lob_pages, rows
from olr_pg.wire import encoder

extraction = extract.extract_groups
with tempfile.TemporaryDirectory() as folder:
    simulate(1, Path(folder), size=20_000)
    warm_behind_extraction(Path(folder))
kernels = (rows.assemble_rows, lob_pages.resolve_values, encoder.fill_room)
ahead = [kernel.signatures for kernel in kernels]
assert all(ahead), ahead
assert not extraction.signatures
extract.extract_groups = extraction
warm_kernels()
assert [kernel.signatures for kernel in kernels] == ahead
assert len(extraction.signatures) == 1
"""


def test_what_is_compiled_behind_the_extraction_is_what_decoding_needs() -> None:
    result = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert result.returncode == 0, result.stderr
    assert "not all kernels" not in result.stdout
