"""Repeats a read after the connection to the source was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable

ATTEMPTS: Final = 4
LOST: Final = frozenset(
    {Code.ORACLE_UNREACHABLE, Code.ORACLE_CONNECTION_LOST, Code.ORACLE_NOT_OPEN}
)
"""Errors: the source cannot be reached, or the connection is lost. The codes are listed here
because `oracle.driver.driver_failures` imports the driver, which tasks that read files do not need.
"""

_Result = TypeVar("_Result")


def retried(work: Callable[[], _Result]) -> _Result:
    """Return the result of `work`; call it again if the connection is lost.

    Args:
        work: the function to call; a call that fails must have no effects.

    Raises:
        OlrPgError: any error of `work`.
    """
    retrying = Retrying(
        retry=retry_if_exception(
            lambda error: isinstance(error, OlrPgError) and error.code in LOST
        ),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=0.2, max=5),
        reraise=True,
    )
    result: _Result = retrying(work)
    return result
