"""Runs the process from which Spark's Python workers are forked, after a warm-up.

Spark starts it as ``python -m olr_pg.spark.daemon pyspark.worker`` (``spark.python.daemon.module``)
once per executor, and forks a worker from it for every task slot. So every worker starts with the
modules that this process has imported and the compiled kernels that it has loaded before the fork.

The environment variable `PRELOAD_VARIABLE` lists, separated by commas, the modules to import for
the warm-up. An entry ``module:function`` also calls that function, without arguments.
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
    """Import the modules and call the functions that `entries` lists; see the module.

    Raises:
        ImportError: a listed module does not exist.
        AttributeError: a module does not have the listed function.
    """
    for entry in filter(None, entries.split(",")):
        module_name, _, function_name = entry.partition(":")
        module = importlib.import_module(module_name)
        if function_name:
            getattr(module, function_name)()


def main() -> None:
    """Warm up this process, then fork workers until Spark closes the standard input."""
    # Results contain rows, so files must be private on every machine.
    os.umask(PRIVATE_UMASK)
    # Exclude all objects that are loaded here, about a million of them Numba's, from garbage
    # collection, also in the workers: they are never garbage. A worker collects garbage after every
    # task; with these objects, that would take twice as long as decoding a 10 MB log.
    gc.disable()
    # Spark reads a port number from the standard output, so nothing else may be written there.
    with contextlib.redirect_stdout(sys.stderr):
        preload(os.environ.get(PRELOAD_VARIABLE, ""))
    from pyspark.daemon import manager

    gc.freeze()
    gc.enable()

    manager()


if __name__ == "__main__":
    main()
