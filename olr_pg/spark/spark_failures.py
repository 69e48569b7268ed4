"""Translates what Spark and the connection to its JVM raise into errors of the catalogue."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def spark_errors(**where: str) -> Iterator[None]:
    """Turn what Spark and the connection to its JVM raise into 6005."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        raise OlrPgError(Code.SPARK_JOB_FAILED, _reason(error), **where) from error
    except UnboundLocalError as error:
        # Of PySpark, which then has no socket to close: `__context__` is what went wrong.
        reason = str(error.__context__ or error)
        raise OlrPgError(Code.SPARK_JOB_FAILED, reason.strip().splitlines()[0], **where) from error


def _reason(error: Exception) -> str:
    """Take what Spark's innermost exception says first, without the JVM's stack."""
    from py4j.protocol import Py4JError

    words = str(error)
    cause: Any = getattr(error, "java_exception", None)
    with contextlib.suppress(Py4JError, OSError):  # the exception's words are in the JVM
        while cause is not None:
            said = str(cause.toString())
            if said.startswith("org.apache.spark."):
                words = said
            cause = cause.getCause()
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    # Where the text begins with a line of its own, the first one has only the exception's name.
    first = lines[:2] if lines and lines[0].endswith(":") else lines[:1]
    return " ".join(first) or type(error).__name__
