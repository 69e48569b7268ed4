"""The process from which Spark's Python workers are forked, after a warm-up.

Spark starts it as ``python -m olr_pg.spark.daemon pyspark.worker`` (``spark.python.daemon.module``)
once per executor, and forks a worker from it for every task slot. Modules that are imported here
before the first fork, and compiled kernels that are loaded, are available in every worker from its
start.

The environment variable `PRELOAD_VARIABLE` lists what to warm up, separated by commas: modules to
import, and ``module:function`` entries whose function is called without arguments.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from typing import Final

from olr_pg.files.private import PRIVATE_UMASK

PRELOAD_VARIABLE: Final = "OLR_PG_SPARK_PRELOAD"


def preload(entries: str) -> None:
    """Import and call what `entries` lists; see the module.

    Raises:
        ImportError: there is no such module.
        AttributeError: the module has no such function.
    """
    for entry in filter(None, entries.split(",")):
        module_name, _, function_name = entry.partition(":")
        module = importlib.import_module(module_name)
        if function_name:
            getattr(module, function_name)()


def main() -> None:
    """Warm up, then fork workers until Spark closes the standard input."""
    # Results hold rows, on whichever machine this is.
    os.umask(PRIVATE_UMASK)
    # All that is loaded stays, a million objects of Numba's among it. Nobody looks through them for
    # garbage, now or in the workers, which collect it after every task: that would take twice as
    # long as a 10 MB log to decode.
    gc.disable()
    # Spark reads a port from the standard output: nobody else may write there.
    with contextlib.redirect_stdout(sys.stderr):
        preload(os.environ.get(PRELOAD_VARIABLE, ""))
    from pyspark.daemon import manager

    gc.freeze()
    gc.enable()

    manager()


if __name__ == "__main__":
    main()
