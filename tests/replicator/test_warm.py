from __future__ import annotations

import os
import subprocess
import sys

_PROGRAM = """
import tempfile
from pathlib import Path
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.replicator.warm import warm_encoder, warm_kernels
from olr_pg.simulator.simulate import simulate
from olr_pg.wire import encoder

with tempfile.TemporaryDirectory() as folder:
    simulate(1, Path(folder), size=20_000)
    warm_encoder(load_snapshot(str(Path(folder) / "dictionary.json")))
kernels = (encoder.fill_room,)
ahead = [kernel.signatures for kernel in kernels]
warm_kernels()
assert all(ahead), ahead
assert [kernel.signatures for kernel in kernels] == ahead
"""


def test_the_encoder_compiled_ahead_is_the_one_that_decoding_needs() -> None:
    result = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert result.returncode == 0, result.stderr
    assert "not compiled ahead" not in result.stdout
