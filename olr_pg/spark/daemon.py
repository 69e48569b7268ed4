"""Runs the process from which Spark's Python workers are forked, after a warm-up.

Spark starts this process as ``python -m olr_pg.spark.daemon pyspark.worker``
(``spark.python.daemon.module``) once per executor, and forks a worker from it for every task slot.
So every worker starts with the modules that this process has imported and the compiled kernels that
it has loaded before the fork.

The environment variable `PRELOAD_VARIABLE` lists, separated by commas, the modules to import for
the warm-up. An entry ``module:function`` also calls that function, without arguments.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from olr_pg.files.owned import PRIVATE_UMASK

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


def prefer_installed_files() -> None:
    """Remove Spark's archives of PySpark from the import path if the same files are installed.

    Spark puts the archives in its home directory before everything else. An archive contains no
    compiled modules, so each executor would compile PySpark (half a second), and each worker would
    read the archives' directories again (0.1 s).
    """
    archives = [entry for entry in sys.path if entry.endswith(".zip")]
    others = [entry for entry in sys.path if entry not in archives]
    pyspark, py4j = (PathFinder.find_spec(name, others) for name in ("pyspark", "py4j"))
    if pyspark is None or pyspark.origin is None or py4j is None:
        return
    # The archives of another Spark can be of another version, and its JVM requires that one.
    own = (Path(pyspark.origin).parent / "python" / "lib").resolve()
    for entry in archives:
        if Path(entry).resolve().parent == own:
            sys.path.remove(entry)
            sys.path_importer_cache.pop(entry, None)


def main() -> None:
    """Warm up this process, then fork workers until Spark closes the standard input."""
    # Results contain rows, so files must be private on every machine.
    os.umask(PRIVATE_UMASK)
    # Exclude all objects that are loaded here, about a million of them Numba's, from garbage
    # collection, also in the workers: they are never garbage. A worker collects garbage after every
    # task; with these objects, that would take twice as long as decoding a 10 MB log.
    gc.disable()
    prefer_installed_files()
    # Spark reads a port number from the standard output, so nothing else may be written there.
    with contextlib.redirect_stdout(sys.stderr):
        preload(os.environ.get(PRELOAD_VARIABLE, ""))
    from pyspark.daemon import manager

    gc.freeze()
    gc.enable()

    manager()


if __name__ == "__main__":
    main()
