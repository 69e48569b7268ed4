"""Parses PL/SQL blocks, word by word, into steps that can be run.

Supported are variables, assignments, SELECT … INTO, DML (also with RETURNING … INTO), transaction
control, IF, loops over numbers and queries, calls of DBMS_LOB and of the block's own procedures,
exception handlers, and PRAGMA AUTONOMOUS_TRANSACTION. Any other word is an error that names the
word.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlglot.tokenizer_core import TokenType

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.create_table import Words
from olr_pg.simulator.sql.parsing import Token, word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOB_TYPES: Final = ("CLOB", "BLOB", "NCLOB")
_SQL: Final = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE")
_CONTROL: Final = ("COMMIT", "ROLLBACK", "SAVEPOINT")
_ERRORS: Final = {
    "OTHERS": None, "DUP_VAL_ON_INDEX": 1, "NO_DATA_FOUND": 1403, "TOO_MANY_ROWS": 1422,
    "ZERO_DIVIDE": 1476, "INVALID_NUMBER": 1722, "VALUE_ERROR": 6502,
}  # fmt: skip
"""Error numbers by the name of the exception; None for every error."""

Piece = tuple[Token, ...]
"""The words of an expression or a statement."""


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """``name := value``; for the row of a trigger, the name is ``NEW.column``."""

    name: str
    value: Piece


@dataclass(frozen=True, slots=True, eq=False)
class SqlStatement:
    """A query or DML.

    Attributes:
        rest: the text after INTO, of a query.
        into: the variables after INTO.
        returns: INTO belongs to RETURNING.
    """

    text: Piece
    rest: Piece = ()
    into: tuple[str, ...] = ()
    returns: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    """COMMIT, ROLLBACK or SAVEPOINT."""

    text: Piece


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call of a procedure."""

    name: str
    arguments: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """IF: conditions with their statements; ELSE has an empty condition."""

    branches: tuple[tuple[Piece, tuple[Step, ...]], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """FOR: over numbers from `first` to `last`, or over the rows of a query."""

    variable: str
    steps: tuple[Step, ...]
    first: Piece = ()
    last: Piece = ()
    query: Piece = ()


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A variable or a parameter.

    Attributes:
        kind: the first word of its type.
        value: the variable's initial value; empty for NULL.
    """

    name: str
    kind: str
    value: Piece = ()


@dataclass(slots=True, eq=False)
class Block:
    """A block, including the block of a procedure or a trigger.

    Attributes:
        handlers: error numbers with their statements; None stands for every error.
        parameters: the parameters of a procedure.
    """

    variables: list[Variable] = field(default_factory=list)
    procedures: dict[str, Block] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    handlers: list[tuple[tuple[int | None, ...], tuple[Step, ...]]] = field(default_factory=list)
    is_autonomous: bool = False
    parameters: tuple[Variable, ...] = ()


Step = Assignment | SqlStatement | Control | Call | Choice | Loop | Block


def is_block(first: str) -> bool:
    """Return whether a statement with this first word is a block."""
    return first in ("DECLARE", "BEGIN")


def read_block(words: Words) -> Block:
    """Read a block that begins with DECLARE or BEGIN.

    Raises:
        OraError: ORA-06550 (PLS-00103), a word is not supported.
    """
    block = Block()
    if words.take("DECLARE"):
        _read_declarations(words, block)
    _read_body(words, block)
    return block


def unknown(words: Words) -> OraError:
    """Return the error for the next word, which is not expected in a block."""
    text = "the end" if words.done else words.tokens[words.at].text
    return OraError(6550, f"PLS-00103: the simulator does not support {text} in PL/SQL here")


def _read_declarations(words: Words, block: Block) -> None:
    while words.peek() != "BEGIN":
        if words.done:
            raise unknown(words)
        if words.take("PRAGMA"):
            if not words.take("AUTONOMOUS_TRANSACTION", ";"):
                raise unknown(words)
            block.is_autonomous = True
        elif words.take("PROCEDURE"):
            _read_procedure(words, block)
        else:
            block.variables.append(_read_variable(words, ends=(";",)))
            words.take(";")


def _read_procedure(words: Words, block: Block) -> None:
    name, own = words.name(), Block()
    parameters = list[Variable]()
    if words.take("("):
        while not words.take(")"):
            parameters.append(_read_variable(words, ends=(",", ")")))
            words.take(",")
    own.parameters = tuple(parameters)
    if not (words.take("IS") or words.take("AS")):
        raise unknown(words)
    _read_declarations(words, own)
    _read_body(words, own)
    block.procedures[name] = own


def _read_variable(words: Words, ends: Sequence[str]) -> Variable:
    name = words.name()
    for option in ("CONSTANT", "IN"):
        words.take(option)
    kind, value, depth = words.peek(), tuple[Token, ...](), 0
    while not words.done and (depth or words.peek() not in ends):
        if words.peek() in (":=", "DEFAULT"):
            words.at += 1
            value = _until(words, *ends)
            break
        depth += (words.peek() == "(") - (words.peek() == ")")
        words.at += 1
    return Variable(name, kind, value)


def _until(words: Words, *ends: str) -> Piece:
    """Read the words before one of the words `ends`, which must be outside of brackets."""
    start, depth = words.at, 0
    while not words.done:
        if not depth and words.peek() in ends:
            return tuple(words.tokens[start : words.at])
        depth += (words.peek() == "(") - (words.peek() == ")")
        words.at += 1
    raise unknown(words)


def _read_body(words: Words, block: Block) -> None:
    if not words.take("BEGIN"):
        raise unknown(words)
    block.steps = _read_steps(words, "END", "EXCEPTION")
    if words.take("EXCEPTION"):
        while words.take("WHEN"):
            named = " ".join(word(one) for one in _until(words, "THEN")).split(" OR ")
            if any(one not in _ERRORS for one in named):
                raise unknown(words)
            words.take("THEN")
            steps = _read_steps(words, "END", "WHEN")
            block.handlers.append((tuple(_ERRORS[one] for one in named), steps))
    if not words.take("END"):
        raise unknown(words)
    if not words.done and words.peek() != ";":
        words.name()
    if not words.done and not words.take(";"):
        raise unknown(words)


def _read_steps(words: Words, *ends: str) -> tuple[Step, ...]:
    found = list[Step]()
    while words.peek() not in ends:
        if words.done:
            raise unknown(words)
        step = _read_step(words)
        if step is not None:
            found.append(step)
    return tuple(found)


def _read_step(words: Words) -> Step | None:
    first = words.peek()
    readers: dict[str, Callable[[Words], Step]] = {
        "IF": _read_choice, "FOR": _read_loop, "DECLARE": read_block, "BEGIN": read_block,
    }  # fmt: skip
    if words.take("NULL", ";"):
        return None
    if first in readers:
        return readers[first](words)
    if first in _SQL:
        return _read_sql(words)
    if first in _CONTROL:
        text = _until(words, ";")
        words.take(";")
        return Control(text)
    return _read_assignment_or_call(words)


def _read_assignment_or_call(words: Words) -> Step:
    is_row = words.take(":")
    name = words.peek()
    words.at += 1
    while words.take("."):
        name = f"{name}.{words.peek()}"
        words.at += 1
    if words.take(":="):
        step: Step = Assignment(name, _until(words, ";"))
    elif is_row:
        raise unknown(words)
    else:
        step = Call(name, _read_arguments(words))
    if not words.take(";"):
        raise unknown(words)
    return step


def _read_arguments(words: Words) -> tuple[Piece, ...]:
    found = list[Piece]()
    if words.take("("):
        while not words.take(")"):
            found.append(_until(words, ",", ")"))
            words.take(",")
    return tuple(found)


def _read_choice(words: Words) -> Choice:
    branches = list[tuple[Piece, tuple[Step, ...]]]()
    words.take("IF")
    while True:
        condition = _until(words, "THEN")
        words.take("THEN")
        branches.append((condition, _read_steps(words, "ELSIF", "ELSE", "END")))
        if not words.take("ELSIF"):
            break
    if words.take("ELSE"):
        branches.append(((), _read_steps(words, "END")))
    if not words.take("END", "IF", ";"):
        raise unknown(words)
    return Choice(tuple(branches))


def _read_loop(words: Words) -> Loop:
    words.take("FOR")
    variable = words.name()
    if not words.take("IN"):
        raise unknown(words)
    piece = _until(words, "LOOP")
    words.take("LOOP")
    steps = _read_steps(words, "END")
    if not words.take("END", "LOOP", ";"):
        raise unknown(words)
    if piece and piece[0].kind is TokenType.L_PAREN:
        return Loop(variable, steps, query=piece[1:-1])
    # sqlglot reads 1..9 as the number "1.", a dot and 9.
    for at, token in enumerate(piece):
        if token.kind is TokenType.DOT:
            first, last = list(piece[:at]), piece[at + 1 :]
            if first[-1].text.endswith("."):
                one = first[-1]
                first[-1] = one._replace(text=one.text[:-1], end=one.end - 1)
            elif last and last[0].kind is TokenType.DOT:
                last = last[1:]
            return Loop(variable, steps, tuple(first), last)
    raise unknown(words)


def _read_sql(words: Words) -> SqlStatement:
    piece = _until(words, ";")
    words.take(";")
    texts = [word(one) for one in piece]
    depths, depth = list[int](), 0
    for text in texts:
        depth -= text == ")"
        depths.append(depth)
        depth += text == "("

    def place(name: str, start: int = 0) -> int | None:
        places = [at for at in range(start, len(texts)) if texts[at] == name and not depths[at]]
        return places[0] if places else None

    returning = place("RETURNING")
    if texts[0] in ("SELECT", "WITH"):
        into = place("INTO")
        if into is None:
            raise OraError(6550, "PLS-00428: an INTO clause is expected in this SELECT statement")
        end = place("FROM", into) or len(piece)
        names = _names(piece[into + 1 : end])
        return SqlStatement(piece[:into], piece[end:], names)
    if returning is None:
        return SqlStatement(piece)
    into = place("INTO", returning)
    if into is None:
        raise OraError(925, "missing INTO keyword")
    return SqlStatement(piece[:into], (), _names(piece[into + 1 :]), returns=True)


def _names(piece: Piece) -> tuple[str, ...]:
    return tuple(word(one) for one in piece if one.kind is not TokenType.COMMA)
