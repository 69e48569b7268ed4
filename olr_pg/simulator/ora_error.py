"""The errors that Oracle returns."""

from __future__ import annotations


class OraError(Exception):
    """An ORA error that is returned to the client.

    Args:
        code: the number of the error.
        text: the message.
        offset: place in the statement, in characters.
    """

    def __init__(self, code: int, text: str, offset: int = 0) -> None:
        super().__init__(f"ORA-{code:05d}: {text}")
        self.code = code
        self.offset = offset
