"""Compiles kernels that are missing when a run begins.

Compiling takes half a minute on two cores. A demo does not need to wait: another process compiles
the kernels, and the run interprets each kernel until the compiled one is on disk. At the next call
of the kernel, the run loads the compiled one. Spark's workers wait for the same process
(`replicator.kernel_warmup`).

A run on real data compiles first. Interpreted kernels were compared with compiled ones on the data
of the test suite. But Python's integers differ from a processor's integers, so only compiled
kernels are used for real data.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.applier.kernel_warmup import is_compiled as is_applier_compiled
from olr_pg.applier.kernel_warmup import warm_kernels as warm_applier
from olr_pg.applier.kernel_warmup import warming
from olr_pg.kernels.late_dispatcher import interpret_first
from olr_pg.replicator.kernel_warmup import is_compiled as is_decoder_compiled
from olr_pg.replicator.kernel_warmup import uncollected, warm_port
from olr_pg.replicator.kernel_warmup import warm_kernels as warm_decoder
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

INTERPRETED_SECONDS: Final = 120.0
"""If the run has interpreted kernels for this time, it compiles the missing kernels itself."""

_NICENESS: Final = 10
"""Lower priority for the compilation, because the run has changes to apply."""

_log = structlog.get_logger(__name__)


@contextmanager
def kernels_ahead(orders: Collection[ByteOrder], *, interpret: bool) -> Iterator[None]:
    """Compile the kernels of a run: before the context begins, or, with `interpret`, in another
    process while the context is active.

    Args:
        orders: byte orders of the ports that the bundled applier reads; can be empty.
        interpret: whether the run interprets kernels that are not compiled yet.
    """
    missing = not is_decoder_compiled() or (bool(orders) and not is_applier_compiled())
    if not interpret or not missing:
        if missing:
            _log.info(
                "compiling kernels, as at the first start of each version; this can take minutes",
                in_advance="olr-pg prepare",
            )
        with ExitStack() as stack:
            for order in orders:
                stack.enter_context(warming(order))
            yield
        return
    process = subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-P", "-m", __name__, *(order.value for order in orders)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        # Errors are not read: if the process fails, the run compiles the kernels and logs this.
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    interpret_first(INTERPRETED_SECONDS)
    try:
        yield
    finally:
        interpret_first(0)
        # Kill the process group, because the process has a child process. The system cannot reuse
        # its id before `wait`.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main(orders: Sequence[str]) -> None:
    """Compile the kernels that a run needs, and store them on disk.

    Args:
        orders: see `kernels_ahead`; here the values of the enum.
    """
    os.nice(_NICENESS)
    with uncollected():
        warm_decoder()
        for order in orders:
            warm_applier(ByteOrder(order))
        warm_port()


if __name__ == "__main__":
    main(sys.argv[1:])
