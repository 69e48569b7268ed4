"""A Spark session whose SQL part is started on first use.

Tasks only need the context. Catalogues, the planner and the registered data source take more than
half of a session's start in Java; a session that never makes a data frame does not need them.
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
    """A session that has the context at once, and everything else on first use.

    `SparkSession` keeps its Java objects in private attributes, which its constructor sets; until
    then they are missing.
    """

    def __init__(self, context: SparkContext) -> None:
        self._sc = context
        self._beginning = threading.RLock()
        self._has_begun = False
        # The constructor does, for what Java raises everywhere in this process.
        install_exception_handler()

    def __getattr__(self, name: str) -> Any:
        # Only called for what is missing.
        if name.startswith("__") or "_beginning" not in self.__dict__:
            raise AttributeError(name=name, obj=self)
        with self._beginning:
            if not self._has_begun:
                super().__init__(self._sc)
                register(self)
                self._has_begun = True
        return object.__getattribute__(self, name)

    def stop(self) -> None:
        """Stop the context, and everything else that was started."""
        if self._has_begun:
            super().stop()
        else:
            self._sc.stop()
