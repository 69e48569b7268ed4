"""Parses CREATE TABLE and the additions of ALTER TABLE, word by word.

sqlglot does not parse most of Oracle's DDL. The stand-in executes everything that this module
parses; any other word is an error that names the word.

`read_type` parses the types of CAST and of column definitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.parsing import Token, name_of, tokens_of, word
from olr_pg.simulator.sql.sql_columns import Declared, SqlColumn, declared_type, lob_storage

if TYPE_CHECKING:
    from collections.abc import Sequence

_CAST_KINDS: Final = {
    "DECIMAL": "NUMBER", "VARCHAR": "VARCHAR2", "NVARCHAR": "NVARCHAR2", "CHAR": "CHAR",
    "NCHAR": "NCHAR", "TIMESTAMP": "TIMESTAMP", "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMPLTZ": "TIMESTAMP WITH LOCAL TIME ZONE",
    "DATE": "DATE", "DATETIME": "DATE", "INT": "INTEGER", "BIGINT": "INTEGER", "FLOAT": "FLOAT",
    "DOUBLE": "BINARY_DOUBLE", "VARBINARY": "RAW", "BINARY": "RAW", "TEXT": "CLOB",
    "BLOB": "BLOB", "CLOB": "CLOB", "BIGDECIMAL": "NUMBER",
}  # fmt: skip
_INTERVALS: Final = {"YEAR": "MONTH", "DAY": "SECOND"}


def declared_of(node: Any) -> Declared:
    """Return the type that a CAST names.

    Raises:
        OraError: ORA-00902, the type is not supported.
    """
    assert isinstance(node, exp.DataType)
    kind = node.this.name if isinstance(node.this, exp.DType) else str(node.this)
    text = node.sql("oracle").upper()
    numbers, in_characters = list[int](), False
    for one in node.expressions:
        if isinstance(one, exp.DataTypeParam) and isinstance(one.this, exp.Literal):
            numbers.append(int(one.this.name))
            in_characters = in_characters or "CHAR" in str(one.args.get("expression") or "").upper()
    named = _CAST_KINDS.get(kind, text.split("(")[0].strip())
    if text.startswith("BINARY_FLOAT"):
        named = "BINARY_FLOAT"
    return declared_type(named, tuple(numbers), in_characters=in_characters)


def read_type(tokens: Sequence[Token], at: int) -> tuple[Declared, int]:
    """Read the type of a column's definition; return the type, and the index after it.

    Raises:
        OraError: ORA-00902 and others, the type is not supported.
    """
    kind = word(tokens[at])
    at += 1
    numbers, in_characters, at = _numbers(tokens, at)
    words = [word(one) for one in tokens[at : at + 4]]
    if kind == "INTERVAL":
        unit = words[0]
        leading, _, at = _numbers(tokens, at + 1)
        if unit not in _INTERVALS or word(tokens[at]) != "TO":
            raise OraError(902, "invalid datatype")
        digits, _, at = _numbers(tokens, at + 2)
        kind = f"INTERVAL {unit} TO {_INTERVALS[unit]}"
        numbers = [*(leading or [2]), *digits]
    elif words[:1] == ["WITH"]:
        size = words.index("ZONE") + 1
        kind, at = " ".join((kind, *words[:size])), at + size
    elif kind == "DOUBLE":
        kind, at = "FLOAT", at + 1
    elif kind == "LONG":
        kind, at = "LONG" + (" RAW" if words[:1] == ["RAW"] else ""), at + 1
    return declared_type(kind, tuple(numbers), in_characters=in_characters), at


def _numbers(tokens: Sequence[Token], at: int) -> tuple[list[int], bool, int]:
    """Parse (10, 2) or (10 CHAR), if present."""
    if at >= len(tokens) or tokens[at].text != "(":
        return [], False, at
    numbers, in_characters, sign = list[int](), False, 1
    at += 1
    while tokens[at].text != ")":
        if tokens[at].text == "-":
            sign = -1
        elif tokens[at].text.isdigit():
            numbers.append(sign * int(tokens[at].text))
            sign = 1
        in_characters = in_characters or word(tokens[at]) == "CHAR"
        at += 1
    return numbers, in_characters, at + 1


_IGNORED: Final = {
    "TABLESPACE": 1, "PCTFREE": 1, "PCTUSED": 1, "INITRANS": 1, "LOGGING": 0, "NOCOMPRESS": 0,
    "NOPARALLEL": 0, "NOCACHE": 0, "CACHE": 0, "NOROWDEPENDENCIES": 0, "MONITORING": 0,
    "INMEMORY": 0,
}  # fmt: skip
"""Clauses that are ignored, with the number of words that follow them."""


@dataclass(slots=True)
class Constraint:
    """The declaration of a constraint.

    Attributes:
        kind: ``PRIMARY``, ``UNIQUE``, ``FOREIGN`` or ``CHECK``.
        parent: the referenced table of a foreign key; `parent_columns` are its columns if they are
            named.
    """

    kind: str
    name: str = ""
    columns: tuple[str, ...] = ()
    condition: str = ""
    parent: str = ""
    parent_columns: tuple[str, ...] = ()
    on_delete: str = ""


@dataclass(frozen=True, slots=True)
class Partition:
    """The declaration of a partition.

    Attributes:
        values: the texts of its upper bound or of its values; empty for MAXVALUE or DEFAULT.
    """

    name: str
    values: tuple[str, ...] = ()


@dataclass(slots=True)
class TableDefinition:
    """The declaration of a table.

    Attributes:
        ranges: the partitions by range, or by list if `is_list`.
        identity_start: the first value of its identity column, if the statement names one.
    """

    columns: list[SqlColumn] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    index_organised: bool = False
    row_dependencies: bool = False
    partitions: int = 1
    partition_column: str = ""
    ranges: list[Partition] = field(default_factory=list)
    is_list: bool = False
    row_movement: bool = False
    logging: Logging | None = None
    query: str = ""
    identity_start: int | None = None


class Words:
    """Reads the words of a statement one after the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: Sequence[Token] = tokens_of(text.strip().rstrip(";"))
        self.at = 0

    @property
    def done(self) -> bool:
        """Return whether everything was read."""
        return self.at >= len(self.tokens)

    def peek(self, ahead: int = 0) -> str:
        """Return the next word, or a later word, without consuming it; empty after the end."""
        at = self.at + ahead
        return "" if at >= len(self.tokens) else word(self.tokens[at])

    def take(self, *words: str) -> bool:
        """Read these words if they come next; return whether they did."""
        if all(self.peek(at) == one for at, one in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """Read words that must come next.

        Raises:
            OraError: ORA-00905, other words come.
        """
        if not self.take(*words):
            raise self.unknown()

    def name(self) -> str:
        """Read a name; return only its last part if an owner precedes it."""
        if self.done:
            raise OraError(903, "invalid table name")
        found = name_of(self.tokens[self.at])
        self.at += 1
        return self.name() if self.take(".") else found

    def names(self) -> tuple[str, ...]:
        """Read names in brackets."""
        self.expect("(")
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        self.expect(")")
        return tuple(found)

    def number(self) -> int:
        """Read an integer."""
        sign = -1 if self.take("-") else 1
        text = self.peek()
        if not text.isdigit():
            raise self.unknown()
        self.at += 1
        return sign * int(text)

    def bracket(self) -> str:
        """Read brackets; return the text in them."""
        self.expect("(")
        start, depth = self.at, 1
        while depth:
            if self.done:
                raise OraError(907, "missing right parenthesis")
            kind = self.tokens[self.at].kind
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            self.at += 1
        return self.text_of(start, self.at - 1)

    def text_of(self, start: int, end: int) -> str:
        """Return the text of the words from `start` to before `end`."""
        return self.text[self.tokens[start].start : self.tokens[end - 1].end + 1]

    def unknown(self) -> OraError:
        """Return the error for the next word, which is not expected."""
        if self.done:
            return OraError(905, "missing keyword")
        text = self.tokens[self.at].text
        return OraError(
            922, f"missing or invalid option: the simulator does not support {text} here"
        )


def read_table(words: Words) -> TableDefinition:
    """Parse CREATE TABLE, after the table's name.

    Raises:
        OraError: a word of the text is unknown.
    """
    found = TableDefinition()
    if words.peek() == "(":
        words.expect("(")
        _read_item(words, found)
        while words.take(","):
            _read_item(words, found)
        words.expect(")")
    while not words.done:
        if words.take("AS"):
            found.query = words.text_of(words.at, len(words.tokens))
            words.at = len(words.tokens)
        else:
            _read_clause(words, found)
    return found


def _read_item(words: Words, found: TableDefinition) -> None:
    if words.take("SUPPLEMENTAL", "LOG", "DATA"):
        found.logging = read_logging(words)
    elif words.peek() in ("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"):
        found.constraints.append(read_constraint(words))
    else:
        read_column(words, found)


def read_logging(words: Words) -> Logging:
    """Read (ALL) COLUMNS, or (PRIMARY KEY) COLUMNS."""
    kind = words.bracket().upper().split()
    words.expect("COLUMNS")
    if kind == ["ALL"]:
        return Logging.ALL
    if kind == ["PRIMARY", "KEY"]:
        return Logging.PRIMARY_KEY
    raise OraError(
        922, "missing or invalid option: the simulator supports only ALL and PRIMARY KEY"
    )


def read_column(words: Words, found: TableDefinition) -> None:
    """Read the definition of a column, with its constraints.

    Raises:
        OraError: a word of the text is unknown.
    """
    name = words.name()
    if any(one.name == name for one in found.columns):
        raise OraError(957, "duplicate column name")
    if words.done:
        raise OraError(902, "invalid datatype")
    declared, words.at = read_type(words.tokens, words.at)
    column = SqlColumn(name, declared, storage=lob_storage(declared.kind))
    if words.take("GENERATED"):
        identity, found.identity_start = read_identity(words)
        column = replace(column, identity=identity, not_null=True)
    if words.take("DEFAULT"):
        start, depth = words.at, 0
        while not words.done:
            depth += (words.peek() == "(") - (words.peek() == ")")
            ends = (
                ",", "NOT", "NULL", "CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES",
            )  # fmt: skip
            if words.at > start and not depth and words.peek() in ends:
                break
            if depth < 0:
                break
            words.at += 1
        column = replace(column, default=words.text_of(start, words.at))
    while words.peek() not in ("", ",", ")"):
        label = words.name() if words.take("CONSTRAINT") else ""
        if words.take("NOT", "NULL"):
            column = replace(column, not_null=True)
        elif words.take("NULL") or words.take("ENABLE"):
            continue
        else:
            constraint = _read_constraint_kind(words, label, (name,))
            found.constraints.append(constraint)
    found.columns.append(column)


def read_identity(words: Words) -> tuple[str, int | None]:
    """Parse the text after GENERATED: when an identity column is generated, and its first value.

    Raises:
        OraError: a word of the text is unknown.
    """
    if words.take("BY", "DEFAULT"):
        found = "BY DEFAULT ON NULL" if words.take("ON", "NULL") else "BY DEFAULT"
    else:
        words.take("ALWAYS")
        found = "ALWAYS"
    words.expect("AS", "IDENTITY")
    start = None
    if words.take("("):
        words.expect("START", "WITH")
        start = words.number()
        words.expect(")")
    return found, start


def read_constraint(words: Words) -> Constraint:
    """Read a constraint of a table.

    Raises:
        OraError: a word of the text is unknown.
    """
    name = words.name() if words.take("CONSTRAINT") else ""
    return _read_constraint_kind(words, name, ())


def _read_constraint_kind(words: Words, name: str, columns: tuple[str, ...]) -> Constraint:
    if words.take("PRIMARY", "KEY"):
        found = Constraint("PRIMARY", name, columns or words.names())
    elif words.take("UNIQUE"):
        found = Constraint("UNIQUE", name, columns or words.names())
    elif words.take("CHECK"):
        found = Constraint("CHECK", name, condition=words.bracket())
    elif words.peek() in ("FOREIGN", "REFERENCES"):
        if words.take("FOREIGN", "KEY"):
            columns = words.names()
        words.expect("REFERENCES")
        found = Constraint("FOREIGN", name, columns, parent=words.name())
        if words.peek() == "(":
            found.parent_columns = words.names()
        if words.take("ON", "DELETE"):
            found.on_delete = "CASCADE" if words.take("CASCADE") else "SET NULL"
            if found.on_delete == "SET NULL":
                words.expect("SET", "NULL")
    else:
        raise words.unknown()
    words.take("ENABLE")
    if words.take("USING", "INDEX") and words.take("TABLESPACE"):
        words.name()
    return found


def _read_clause(words: Words, found: TableDefinition) -> None:
    if words.peek() in _IGNORED:
        words.at += 1 + _IGNORED[words.peek()]
    elif words.take("ORGANIZATION", "INDEX"):
        found.index_organised = True
    elif words.take("ORGANIZATION", "HEAP") or words.take("SEGMENT", "CREATION"):
        if words.peek() in ("IMMEDIATE", "DEFERRED"):
            words.at += 1
    elif words.take("ROWDEPENDENCIES"):
        found.row_dependencies = True
    elif words.take("PARTITION", "BY", "HASH"):
        (found.partition_column,) = words.names()
        words.expect("PARTITIONS")
        found.partitions = words.number()
    elif words.take("PARTITION", "BY", "RANGE") or words.take("PARTITION", "BY", "LIST"):
        found.is_list = words.tokens[words.at - 1].text.upper() == "LIST"
        (found.partition_column,) = words.names()
        words.expect("(")
        found.ranges.append(read_partition(words))
        while words.take(","):
            found.ranges.append(read_partition(words))
        words.expect(")")
        found.partitions = len(found.ranges)
    elif words.take("ENABLE", "ROW", "MOVEMENT"):
        found.row_movement = True
    elif words.take("DISABLE", "ROW", "MOVEMENT"):
        found.row_movement = False
    elif words.take("LOB"):
        names = words.names()
        words.expect("STORE", "AS")
        _read_lob_storage(words, found, names)
    else:
        raise words.unknown()


def read_partition(words: Words) -> Partition:
    """Read PARTITION … VALUES LESS THAN (…), or VALUES (…).

    Raises:
        OraError: a word of the text is unknown.
    """
    words.expect("PARTITION")
    name = words.name()
    words.expect("VALUES")
    words.take("LESS", "THAN")
    if words.take("(", "MAXVALUE", ")") or words.take("(", "DEFAULT", ")"):
        return Partition(name)
    return Partition(name, read_bounds(words))


def read_bounds(words: Words) -> tuple[str, ...]:
    """Read expressions in brackets.

    Raises:
        OraError: ORA-00907, the closing bracket is missing.
    """
    words.expect("(")
    values, start, depth = list[str](), words.at, 0
    while depth or words.peek() != ")":
        if words.done:
            raise OraError(907, "missing right parenthesis")
        depth += (words.peek() == "(") - (words.peek() == ")")
        words.at += 1
        if not depth and words.peek() in (",", ")"):
            values.append(words.text_of(start, words.at))
            words.take(",")
            start = words.at
    words.expect(")")
    return tuple(values)


def _read_lob_storage(words: Words, found: TableDefinition, names: Sequence[str]) -> None:
    options: dict[str, bool | int] = {}
    if words.peek() in ("SECUREFILE", "BASICFILE"):
        options["securefile"] = words.peek() == "SECUREFILE"
        words.at += 1
    if words.take("("):
        while not words.take(")"):
            if words.peek() in ("ENABLE", "DISABLE"):
                options["in_row"] = words.peek() == "ENABLE"
                words.at += 1
                words.expect("STORAGE", "IN", "ROW")
            elif words.peek() in ("TABLESPACE", "CHUNK", "NOCACHE", "CACHE", "LOGGING"):
                words.at += 2 if words.peek() in ("TABLESPACE", "CHUNK") else 1
            else:
                raise words.unknown()
    for at, column in enumerate(found.columns):
        if column.name in names:
            storage = lob_storage(column.declared.kind, **options)
            if storage is None:
                raise OraError(22853, "invalid LOB storage option specification")
            found.columns[at] = replace(column, storage=storage)
