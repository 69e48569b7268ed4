"""A Spark session whose SQL begins when something first asks for it.

Tasks need the context alone. Catalogues, the planner and the registered data source are more than
half of what a session's start costs Java, and whoever never makes a data frame goes without.
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
    """A session that has the context at once, and all else with the first use of anything else.

    `SparkSession` keeps what it has of Java in private attributes, which its constructor sets: they
    are missing until then.
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
        """Stop the context, and what there is besides."""
        if self._has_begun:
            super().stop()
        else:
            self._sc.stop()
