"""Reads the tokens of a PL/SQL unit."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from sqlglot.dialects.oracle import Oracle
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from olr_pg.schema.translating import UntranslatableError

_RANGE: Final = re.compile(r"('(?:[^']|'')*'|--[^\n]*|/\*.*?\*/)|\.\.", re.DOTALL)
_TEXTS: Final = (TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.RAW_STRING)
_EVENTS: Final = {
    "INSERTING": "(TG_OP = 'INSERT')",
    "UPDATING": "(TG_OP = 'UPDATE')",
    "DELETING": "(TG_OP = 'DELETE')",
}
_JOINING: Final = ("OUTER", "INNER", "LEFT", "RIGHT", "FULL", "CROSS")
"""Words of joins, which can be names in Oracle, such as labels."""
_ATTRIBUTES: Final = ("FOUND", "NOTFOUND", "ROWCOUNT", "ISOPEN")
_NAMES: Final = re.compile(r"[A-Z_][\w$#]*")


class _Tokenizer(Oracle.Tokenizer):
    COMMANDS: ClassVar[set[TokenType]] = set()
    """Empty, because sqlglot's default would make it read all the text after EXECUTE or FETCH as
    one token.
    """


class _Words(Oracle):
    Tokenizer = _Tokenizer


class Cursor:
    """Reads the tokens of a PL/SQL unit one after the other.

    Raises:
        UntranslatableError: the text cannot be split into tokens.
    """

    def __init__(self, text: str) -> None:
        self.text = _RANGE.sub(lambda found: found[1] or " .. ", text)
        try:
            self._tokens = _Words().tokenize(self.text)
        except TokenError as error:
            raise UntranslatableError("the code cannot be parsed as PL/SQL") from error
        self._at = 0

    def word(self, ahead: int = 0) -> str:
        """Return the word or sign `ahead` tokens after the current position, in upper case. The
        result is empty for a literal, a quoted name, or the end of the text.
        """
        at = self._at + ahead
        if at >= len(self._tokens):
            return ""
        token = self._tokens[at]
        hidden = token.token_type in _TEXTS or token.token_type is TokenType.IDENTIFIER
        return "" if hidden else token.text.upper()

    @property
    def is_done(self) -> bool:
        """Whether all tokens were read."""
        return self._at >= len(self._tokens)

    @property
    def place(self) -> int:
        """The current position, for `text_since`."""
        return self._at

    def text_since(self, place: int) -> str:
        """Return the source text from a position to the current one."""
        return self.text[self._tokens[place].start : self._tokens[self._at - 1].end + 1]

    def step(self) -> None:
        """Move past one token.

        Raises:
            UntranslatableError: there are no more tokens.
        """
        if self.is_done:
            raise UntranslatableError("the text ends too early")
        self._at += 1

    def rest(self) -> str:
        """Read and return all remaining text."""
        begin, self._at = self._at, len(self._tokens)
        return self._between(begin, self._at)

    def take(self, *words: str) -> bool:
        """Move past the given words if they come next; return whether they came next."""
        if any(self.word(ahead) != word for ahead, word in enumerate(words)):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Move past these words.

        Raises:
            UntranslatableError: other words come next.
        """
        if not self.take(*words):
            raise UntranslatableError(f"{self._here()} where {' '.join(words)} is expected")

    def name(self) -> str:
        """Read a name; return it in the form in which Oracle stores it."""
        if self.is_done:
            raise UntranslatableError("the text ends too early")
        token = self._tokens[self._at]
        is_quoted = token.token_type is TokenType.IDENTIFIER
        if not is_quoted and not _NAMES.fullmatch(token.text.upper()):
            raise UntranslatableError(f"{self._here()} where a name is expected")
        self._at += 1
        return str(token.text) if is_quoted else str(token.text).upper()

    def path(self) -> list[str]:
        """Read names that are separated by dots. The colon before NEW and OLD is left out."""
        self.take(":")
        names = [self.name()]
        while self.take("."):
            names.append(self.name())
        return names

    def until(self, *ends: str) -> str:
        """Read the text up to the first of the words in `ends` that is outside brackets and CASE
        expressions.

        Raises:
            UntranslatableError: none of the words follows.
        """
        begin, depth = self._at, 0
        while not self.is_done:
            word = self.word()
            if depth == 0 and word in ends:
                return self._between(begin, self._at)
            depth += {"(": 1, "CASE": 1, ")": -1, "END": -1}.get(word, 0)
            self._at += 1
        raise UntranslatableError(f"the text ends before {' or '.join(ends)}")

    def list_until(self, *ends: str) -> list[str]:
        """Read texts that are separated by commas, up to one of the words in `ends`; move past that
        word.
        """
        found = [self.until(",", *ends)]
        while self.take(","):
            found.append(self.until(",", *ends))
        self._at += 1
        return found

    def _between(self, begin: int, end: int) -> str:
        """Return the text of the tokens from `begin` to `end`, without comments and without the
        colons before NEW and OLD.
        """
        pieces, before, skipped = list[str](), None, -1
        for at in range(begin, end):
            token = self._tokens[at]
            after = self._tokens[at + 1].text.upper() if at + 1 < end else ""
            if token.token_type is TokenType.COLON and after in ("NEW", "OLD"):
                continue
            gap = before is None or token.start == before + 1
            if at <= skipped:
                continue
            if self._is_attribute(at, end):
                pieces += ["" if gap else " ", self._attribute(at)]
                skipped, before = at + 2, self._tokens[at + 2].end
                continue
            pieces.append("" if gap else " ")
            word = self.text[token.start : token.end + 1]
            if word.upper() in _EVENTS and after == "(":
                raise UntranslatableError(
                    f"{word.upper()} of a column: PostgreSQL does not say which columns an UPDATE"
                    " names; compare :OLD and :NEW, or use a trigger with UPDATE OF"
                )
            if after == "." and word.upper() in _JOINING:
                word = f'"{word.upper()}"'
            if after == "OF" and word.upper() == "CURRENT":
                raise UntranslatableError(
                    "WHERE CURRENT OF: select the key in the cursor, and find the row by it"
                )
            pieces.append(_EVENTS.get(word.upper(), word))
            before = token.end
        return "".join(pieces).strip()

    def _is_attribute(self, at: int, end: int) -> bool:
        texts = [token.text.upper() for token in self._tokens[at : min(at + 3, end)]]
        return len(texts) == 3 and texts[1] == "%" and texts[2] in _ATTRIBUTES

    def _attribute(self, at: int) -> str:
        """Return the PL/pgSQL expression that replaces an attribute of a cursor or of SQL, such as
        %FOUND.
        """
        name, _, asked = (token.text.upper() for token in self._tokens[at : at + 3])
        if name == "SQL" and asked in ("FOUND", "NOTFOUND"):
            return f'("SQL%ROWCOUNT" {">" if asked == "FOUND" else "="} 0)'
        found = f'"{name}%{asked.removeprefix("NOT")}"'
        return f"(NOT {found})" if asked == "NOTFOUND" else found

    def _here(self) -> str:
        return "the end" if self.is_done else f"{self._tokens[self._at].text!r}"
