"""Rows of the SYS tables that define tables, in the form of OpenLogReplicator's schema checkpoint.

The keys and values of the JSON form are described in dictionary §11: numbers are as in Oracle, NULL
is −1 or 0, and 128-bit numbers are ``[low, high]``. ``row-id`` is the ROWID of the row in the SYS
table, by which updates and deletes in the redo identify the row (dictionary §10).

The columns of the SYS tables are mapped to the fields of these rows. The same mapping is used for
rows from queries of a live database and for rows decoded from redo (dictionary §2, §10).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, TypeAdapter

_LOW: Final = (1 << 64) - 1

DATABASE_LEVELS: Final = ("supp_log_db_min", "supp_log_db_primary", "supp_log_db_all")
"""The fields of `SysRows` that do not contain rows."""


def _join_halves(value: object) -> object:
    if not isinstance(value, list):
        return value
    if len(value) != 2 or not all(isinstance(half, int) and half >= 0 for half in value):
        raise ValueError("should be a number or [low 64 bits, high 64 bits]")
    return value[0] | value[1] << 64


# Strict by themselves, because a strict dataclass would accept no JSON object.
Integer = Annotated[int, Strict()]
Text = Annotated[str, Strict()]
Bits = Annotated[int, Strict(), BeforeValidator(_join_halves), Field(ge=0)]
Number = Annotated[int, Strict(), Field(ge=0)]


_CONFIG: Final = ConfigDict(
    alias_generator=lambda name: name.replace("_", "-"),
    extra="ignore",
    populate_by_name=True,
    defer_build=True,
)


class SysDocument(BaseModel):
    """A JSON object with hyphens instead of underscores in its keys."""

    model_config = ConfigDict(**_CONFIG, strict=True, frozen=True)


@dataclass(slots=True, frozen=True, kw_only=True)
class SysRow:
    """A row of a SYS table. `row_id` is its ROWID; empty if unknown.

    A dictionary can have millions of rows. As dataclasses with slots they need an eighth of the
    memory of models. Only rows from JSON and from `make_row` are validated.
    """

    __pydantic_config__: ClassVar = _CONFIG

    row_id: Text = ""


@dataclass(slots=True, frozen=True, kw_only=True)
class UserRow(SysRow):
    """A row of USER$; `single` is 1 if only some tables of that owner are captured."""

    user: Number
    name: Text
    spare1: Bits = 0
    single: Number = 0


@dataclass(slots=True, frozen=True, kw_only=True)
class ObjectRow(SysRow):
    """A row of OBJ$; `subname` is the name of a partition; empty if unknown."""

    owner: Number
    obj: Number
    data_obj: Number = 0
    name: Text
    subname: Text = ""
    type: Number
    flags: Bits


@dataclass(slots=True, frozen=True, kw_only=True)
class TabRow(SysRow):
    """A row of TAB$. `ts` is TS# of the tablespace. In all classes with `ts`, None means that the
    tablespace is unknown.
    """

    obj: Number
    data_obj: Number
    ts: Number | None = None
    clu_cols: Number
    flags: Bits
    property: Bits


@dataclass(slots=True, frozen=True, kw_only=True)
class ColRow(SysRow):
    """A row of COL$; `default_text` is known only if the redo has inserted or updated the row."""

    obj: Number
    col: Number
    seg_col: Number
    int_col: Number
    name: Text
    type: Number
    length: Number
    precision: Integer
    scale: Integer
    charset_form: Number
    charset_id: Number
    null: Number
    property: Bits
    default_text: Annotated[Text, Field(exclude=True)] = ""


@dataclass(slots=True, frozen=True, kw_only=True)
class ConstraintRow(SysRow):
    """A row of CDEF$. `enabled` is 0 if the constraint is disabled; for an enabled key, it is OBJ#
    of the key's index.

    For a foreign key, `parent` is OBJ# of the referenced table, and `parent_con` is CON# of the
    referenced key.
    """

    con: Number
    obj: Number
    type: Number
    enabled: Number = 1
    parent: Annotated[Number, Field(exclude=True)] = 0
    parent_con: Annotated[Number, Field(exclude=True)] = 0
    on_delete: Annotated[Number, Field(exclude=True)] = 0
    state: Annotated[Bits | None, Field(exclude=True)] = None
    condition: Annotated[Text, Field(exclude=True)] = ""


@dataclass(slots=True, frozen=True, kw_only=True)
class ConstraintColumnRow(SysRow):
    """A row of CCOL$; `pos` is 0 if the order of the columns is unknown."""

    con: Number
    obj: Number
    int_col: Number
    pos: Number = 0


@dataclass(slots=True, frozen=True, kw_only=True)
class IndexRow(SysRow):
    """A row of IND$."""

    obj: Number
    data_obj: Number = 0
    bo: Number
    ts: Number | None = None
    type: Number
    flags: Bits
    property: Bits


@dataclass(slots=True, frozen=True, kw_only=True)
class IndexColumnRow(SysRow):
    """A row of ICOL$."""

    obj: Number
    bo: Number
    int_col: Number
    pos: Number


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionRow(SysRow):
    """TABPART$, TABCOMPART$ and INDPART$. In the first two, `bo` is OBJ# of the table; in INDPART$,
    it is OBJ# of the index. `part` gives the order of the partitions; None if unknown.
    """

    obj: Number
    data_obj: Number = 0
    bo: Number
    ts: Number | None = None
    part: Number | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class SubPartitionRow(SysRow):
    """A row of TABSUBPART$. `part` gives the order of a partition's sub-partitions; None if
    unknown.
    """

    obj: Number
    data_obj: Number = 0
    p_obj: Number
    ts: Number | None = None
    part: Number | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class LobRow(SysRow):
    """A row of LOB$; unknown `ind` and `chunk` are 0, unknown `flags` and `property` are None."""

    obj: Number
    int_col: Number
    l_obj: Number
    ts: Number = 0
    ind: Number = 0
    chunk: Number = 0
    flags: Bits | None = None
    property: Bits | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class LobCompositePartRow(SysRow):
    """A row of LOBCOMPPART$."""

    part_obj: Number
    l_obj: Number


@dataclass(slots=True, frozen=True, kw_only=True)
class LobFragmentRow(SysRow):
    """A row of LOBFRAG$. `table_part` is OBJ# of the table's partition. `ind` and `table_part` are
    0 if unknown.
    """

    frag_obj: Number
    parent_obj: Number
    table_part: Number = 0
    ts: Number = 0
    ind: Number = 0


@dataclass(slots=True, frozen=True, kw_only=True)
class TablespaceRow(SysRow):
    """A row of TS$; if unknown, `name` is empty, `state` is 0 and `flags` is None."""

    ts: Number
    name: Text = ""
    block_size: Number
    state: Number = 0
    flags: Bits | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class DeferredRow(SysRow):
    """A row of DEFERRED_STG$; `cmp_flag` is None if unknown."""

    obj: Number
    flags_stg: Bits
    cmp_flag: Bits | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class EcolRow(SysRow):
    """A row of ECOL$. `guard_id` is −1 without a guard bit; `default` is hex and missing in a
    schema checkpoint.
    """

    tab_obj: Number
    col_num: Number
    guard_id: Integer = -1
    default: Annotated[Text, Field(pattern="^([0-9a-f]{2})*$")] | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class ConstraintNameRow(SysRow):
    """A row of CON$."""

    con: Number
    owner: Number
    name: Text


@dataclass(slots=True, frozen=True, kw_only=True)
class CommentRow(SysRow):
    """A row of COM$; `col` is INTCOL# of the column, or 0 for the table's comment."""

    obj: Number
    col: Number
    text: Text


class SysRows(SysDocument):
    """The rows of one container, or of some of its tables.

    Attributes:
        supp_log_db_min, supp_log_db_primary, supp_log_db_all: 1 if the database has minimal,
            primary key or all column supplemental logging for all tables, else 0; None if unknown.
    """

    sys_user: list[UserRow]
    sys_obj: list[ObjectRow]
    sys_tab: list[TabRow]
    sys_col: list[ColRow]
    sys_cdef: list[ConstraintRow]
    sys_ccol: list[ConstraintColumnRow]
    sys_tabpart: list[PartitionRow]
    sys_tabcompart: list[PartitionRow]
    sys_tabsubpart: list[SubPartitionRow]
    sys_lob: list[LobRow] = []
    sys_lob_comp_part: list[LobCompositePartRow] = []
    sys_lob_frag: list[LobFragmentRow] = []
    sys_ts: list[TablespaceRow] = []
    sys_ecol: list[EcolRow] = []
    sys_deferredstg: list[DeferredRow] = []
    sys_ind: list[IndexRow] = []
    sys_icol: list[IndexColumnRow] = []
    sys_indpart: list[PartitionRow] = []
    sys_con: list[ConstraintNameRow] = []
    sys_com: list[CommentRow] = []
    supp_log_db_min: Number | None = None
    supp_log_db_primary: Number | None = None
    supp_log_db_all: Number | None = None

    def as_json(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows in their JSON form. 128-bit numbers are two halves."""
        return {
            name: [_row_as_json(row) for row in rows]
            for name, rows in self.model_dump(by_alias=True).items()
            if isinstance(rows, list)
        }

    def levels_as_json(self) -> dict[str, int]:
        """Return the database's supplemental logging levels, if known."""
        levels = self.supp_log_db_min, self.supp_log_db_primary, self.supp_log_db_all
        told = zip(DATABASE_LEVELS, levels, strict=True)
        return {name.replace("_", "-"): level for name, level in told if level is not None}


_Row = TypeVar("_Row", bound=SysRow)
_VALIDATORS: Final[dict[type[SysRow], TypeAdapter[Any]]] = {}


def make_row(kind: type[_Row], values: dict[str, Any]) -> _Row:
    """Return a row of validated values, by the names of the fields.

    Raises:
        pydantic.ValidationError: a value is missing, or has a wrong type.
    """
    validator = _VALIDATORS.get(kind)
    if validator is None:
        validator = _VALIDATORS[kind] = TypeAdapter(kind)
    row: _Row = validator.validate_python(values)
    return row


def _row_as_json(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: [value & _LOW, value >> 64] if isinstance(value, int) and value > _LOW else value
        for key, value in values.items()
    }


_COMPOSITE: Final = {"obj": "OBJ#", "data_obj": "DATAOBJ#", "bo": "BO#", "part": "PART#"}
_PARTITION: Final = {**_COMPOSITE, "ts": "TS#"}

SYS_COLUMNS: Final[dict[str, dict[str, str]]] = {
    "sys_user": {"user": "USER#", "name": "NAME", "spare1": "SPARE1"},
    "sys_obj": {
        "owner": "OWNER#",
        "obj": "OBJ#",
        "data_obj": "DATAOBJ#",
        "name": "NAME",
        "subname": "SUBNAME",
        "type": "TYPE#",
        "flags": "FLAGS",
    },
    "sys_tab": {
        "obj": "OBJ#",
        "data_obj": "DATAOBJ#",
        "ts": "TS#",
        "clu_cols": "CLUCOLS",
        "flags": "FLAGS",
        "property": "PROPERTY",
    },
    "sys_col": {
        "obj": "OBJ#",
        "col": "COL#",
        "seg_col": "SEGCOL#",
        "int_col": "INTCOL#",
        "name": "NAME",
        "type": "TYPE#",
        "length": "LENGTH",
        "precision": "PRECISION#",
        "scale": "SCALE",
        "charset_form": "CHARSETFORM",
        "charset_id": "CHARSETID",
        "null": "NULL$",
        "property": "PROPERTY",
    },
    "sys_cdef": {"con": "CON#", "obj": "OBJ#", "type": "TYPE#", "enabled": "ENABLED"},
    "sys_ccol": {"con": "CON#", "obj": "OBJ#", "int_col": "INTCOL#", "pos": "POS#"},
    "sys_tabpart": _PARTITION,
    "sys_tabcompart": _COMPOSITE,
    "sys_tabsubpart": {
        "obj": "OBJ#",
        "data_obj": "DATAOBJ#",
        "p_obj": "POBJ#",
        "ts": "TS#",
        "part": "SUBPART#",
    },
    "sys_lob": {
        "obj": "OBJ#",
        "int_col": "INTCOL#",
        "l_obj": "LOBJ#",
        "ts": "TS#",
        "ind": "IND#",
        "chunk": "CHUNK",
        "flags": "FLAGS",
        "property": "PROPERTY",
    },
    "sys_lob_comp_part": {"part_obj": "PARTOBJ#", "l_obj": "LOBJ#"},
    "sys_lob_frag": {
        "frag_obj": "FRAGOBJ#",
        "parent_obj": "PARENTOBJ#",
        "table_part": "TABFRAGOBJ#",
        "ts": "TS#",
        "ind": "INDFRAGOBJ#",
    },
    "sys_ts": {
        "ts": "TS#",
        "name": "NAME",
        "block_size": "BLOCKSIZE",
        "state": "ONLINE$",
        "flags": "FLAGS",
    },
    "sys_ecol": {
        "tab_obj": "TABOBJ#",
        "col_num": "COLNUM",
        "guard_id": "GUARD_ID",
        "default": "BINARYDEFVAL",
    },
    "sys_deferredstg": {"obj": "OBJ#", "flags_stg": "FLAGS_STG", "cmp_flag": "CMPFLAG_STG"},
    "sys_ind": {
        "obj": "OBJ#",
        "data_obj": "DATAOBJ#",
        "bo": "BO#",
        "ts": "TS#",
        "type": "TYPE#",
        "flags": "FLAGS",
        "property": "PROPERTY",
    },
    "sys_icol": {"obj": "OBJ#", "bo": "BO#", "int_col": "INTCOL#", "pos": "POS#"},
    "sys_indpart": _PARTITION,
    "sys_con": {"con": "CON#", "owner": "OWNER#", "name": "NAME"},
    "sys_com": {"obj": "OBJ#", "col": "COL#", "text": "COMMENT$"},
}
"""The columns that are queried and decoded. The outer keys are fields of `SysRows`; each value maps
the fields of a row to columns of the SYS table.
"""

TOLD_BY_REDO: Final[dict[str, dict[str, str]]] = {
    "sys_col": {"default_text": "DEFAULT$"},
    "sys_cdef": {
        "parent": "ROBJ#",
        "parent_con": "RCON#",
        "on_delete": "REFACT",
        "state": "DEFER",
        "condition": "CONDITION",
    },
}
"""Further columns, which are only decoded from redo and not queried. So their values are known only
for objects that DDL in the redo has created or altered.
"""

TEXTS: Final = frozenset({"name", "subname", "text", "condition", "default_text"})
"""The fields of rows that contain text in the database's character set."""

_ABSENT: Final[dict[str, Any]] = {
    "precision": -1,
    "scale": -1,
    "guard_id": -1,
    "default": None,
    "cmp_flag": None,
    "subname": "",
    "text": "",
    "condition": "",
    "default_text": "",
    "state": None,
}


def absent(field: str) -> Any:
    """Return the value that represents NULL in a field of a row: 0, unless defined otherwise."""
    return _ABSENT.get(field, 0)
