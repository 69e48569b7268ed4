"""Provides a Spark session whose SQL part is started on first use.

`run_tasks` needs only the Spark context. SQL's catalogues, its planner and the registered data
source take more than half of the time in which Java starts a session. A session that never creates
a DataFrame does not need these parts.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pyspark.errors.exceptions.captured import install_exception_handler
from pyspark.sql import SparkSession

from olr_pg.spark import register

if TYPE_CHECKING:
    from pyspark import SparkContext


class LateSqlSession(SparkSession):
    """A session that starts with only the Spark context, and starts everything else on first use.

    `SparkSession` keeps its Java objects in private attributes, which its constructor sets. This
    class calls the constructor of `SparkSession` when one of these attributes is first read.
    """

    def __init__(self, context: SparkContext) -> None:
        self._sc = context
        self._beginning = threading.RLock()
        self._has_begun = False
        # The constructor of SparkSession would do this. After it, PySpark converts all exceptions
        # of Java in this process.
        install_exception_handler()

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for a missing attribute.
        if name.startswith("__") or "_beginning" not in self.__dict__:
            raise AttributeError(name=name, obj=self)
        with self._beginning:
            if not self._has_begun:
                super().__init__(self._sc)
                register(self)
                self._has_begun = True
        return object.__getattribute__(self, name)

    def stop(self) -> None:
        """Stop the Spark context, and the SQL part if it was started."""
        if self._has_begun:
            super().stop()
        else:
            self._sc.stop()
