"""What an error advises, followed to the letter."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olr_pg.errors import Code, OlrPgError


def followed(error: OlrPgError, code: Code, *words: str) -> OlrPgError:
    """Say that the caller now does what an error advises, and has the words from its advice.

    `test_followed_advice` finds the codes of these calls. So a caller does nothing else than the
    words say, starts again, and then compares the target with the truth.

    Args:
        words: the words of the advice that are followed.
    """
    assert error.code == code, error
    for one in words:
        assert one in error.action, (one, error.action)
    return error
