"""Translates what Spark and the connection to its JVM raise into errors of the catalogue."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, Final

from olr_pg.errors import Code, OlrPgError, plain_reason

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def spark_errors(**where: str) -> Iterator[None]:
    """Turn what Spark and the connection to its JVM raise into 6005, or 6008."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        if lacking := _missing_on_executor(str(error)):
            raise OlrPgError(Code.EXECUTOR_UNFIT, lacking, **where) from error
        raise OlrPgError(Code.SPARK_JOB_FAILED, _reason(error), **where) from error


_MISSING_ON_EXECUTOR: Final = (
    (r"No module named '?(?:olr_pg|pyspark)\b", "the package is not installed there"),
    (r"Cannot run program \"([^\"]+)\"", "its Python is missing"),
    (r"PYTHON_VERSION_MISMATCH", "it has another version of Python"),
    (r"cannot cache function", "the compiled kernels cannot be kept there"),
)
"""What Spark says, and what it means: the beginning of the process that runs tasks has failed."""


def _missing_on_executor(words: str) -> str | None:
    """Return what a machine lacks to run tasks; None where the error is another one."""
    for pattern, meaning in _MISSING_ON_EXECUTOR:
        if found := re.search(rf".*{pattern}.*", words):
            return f"{meaning}: {found[0].strip()}"
    return None


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
    return " ".join(first) or plain_reason(error)
