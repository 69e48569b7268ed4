"""Compiling all kernels before anything needs them."""

from __future__ import annotations

from olr_pg.applier.kernel_warmup import warm_chunks
from olr_pg.applier.kernel_warmup import warm_kernels as warm_applier
from olr_pg.load.kernel_warmup import warm_load
from olr_pg.replicator.kernel_warmup import warm_kernels as warm_decoder
from olr_pg.replicator.kernel_warmup import warm_lobs, warm_online
from olr_pg.server.kernel_warmup import warm_port
from olr_pg.wire.frames import ByteOrder


def compile_kernels() -> None:
    """Compile the kernels, or load them where they are on disk already."""
    warm_decoder()
    warm_lobs()
    warm_online()
    warm_applier(ByteOrder.LITTLE)
    warm_chunks(ByteOrder.LITTLE)
    warm_port()
    warm_load()
