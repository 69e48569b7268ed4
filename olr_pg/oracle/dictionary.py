"""The dictionary of chosen tables, read from the SYS tables as of one SCN (dictionary §3).

Every query is batched over the tables, gives its values as binds and reads its table as of the same
SCN, so that the rows fit together whatever happens in the database meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from sqlalchemy import select

from olr_pg.datatypes.binary_xml import NO_TOKENS
from olr_pg.dictionary import sys_rows
from olr_pg.dictionary.consistency import check_unique_tables
from olr_pg.dictionary.lob import BLOB
from olr_pg.dictionary.model import Snapshot
from olr_pg.dictionary.sys_tables import join_tables
from olr_pg.errors import OlrPgError
from olr_pg.oracle import tables
from olr_pg.oracle.facts import read_facts
from olr_pg.oracle.failures import SNAPSHOT_AGE
from olr_pg.oracle.flashback import as_of
from olr_pg.oracle.tables import among
from olr_pg.oracle.xml_tokens import read_xml_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Table

    from olr_pg.dictionary.model import Database
    from olr_pg.oracle.connection import OracleDatabase

BATCH: Final = 500
"""Values in one IN list; Oracle takes 1,000."""

ATTEMPTS: Final = 3
FIRST_WITH_GUARDS: Final = (12, 1)
SYS: Final = "SYS"
_TABLE: Final = 2
"""OBJ$.TYPE# of a table."""

_WHERE: Final = "the dictionary of the database"
_ABSENT: Final = {"precision": -1, "scale": -1, "guard_id": -1, "default": None}
"""What stands for NULL in a row, where that is not 0."""

_Row = TypeVar("_Row", bound=sys_rows.SysRow)


class _Kind(NamedTuple):
    """How the rows of a SYS table are kept: the columns by the row's fields."""

    table: Table
    fields: Mapping[str, str]


_USER: Final = _Kind(tables.USER, {"user": "USER#", "name": "NAME", "spare1": "SPARE1"})
_OBJ: Final = _Kind(
    tables.OBJ,
    {
        "owner": "OWNER#",
        "obj": "OBJ#",
        "data_obj": "DATAOBJ#",
        "name": "NAME",
        "type": "TYPE#",
        "flags": "FLAGS",
    },
)
_TAB: Final = _Kind(
    tables.TAB,
    {
        "obj": "OBJ#",
        "data_obj": "DATAOBJ#",
        "clu_cols": "CLUCOLS",
        "flags": "FLAGS",
        "property": "PROPERTY",
    },
)
_COL: Final = _Kind(
    tables.COL,
    {
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
)
_CDEF: Final = _Kind(
    tables.CDEF, {"con": "CON#", "obj": "OBJ#", "type": "TYPE#", "enabled": "ENABLED"}
)
_CCOL: Final = _Kind(
    tables.CCOL, {"con": "CON#", "obj": "OBJ#", "int_col": "INTCOL#", "pos": "POS#"}
)
_PART_FIELDS: Final = {"obj": "OBJ#", "data_obj": "DATAOBJ#", "bo": "BO#"}
_TABPART: Final = _Kind(tables.TABPART, _PART_FIELDS)
_TABCOMPART: Final = _Kind(tables.TABCOMPART, _PART_FIELDS)
_TABSUBPART: Final = _Kind(
    tables.TABSUBPART, {"obj": "OBJ#", "data_obj": "DATAOBJ#", "p_obj": "POBJ#"}
)
_IND: Final = _Kind(
    tables.IND, {**_PART_FIELDS, "type": "TYPE#", "flags": "FLAGS", "property": "PROPERTY"}
)
_ICOL: Final = _Kind(tables.ICOL, {"obj": "OBJ#", "bo": "BO#", "int_col": "INTCOL#", "pos": "POS#"})
_LOB: Final = _Kind(
    tables.LOB,
    {
        "obj": "OBJ#",
        "int_col": "INTCOL#",
        "l_obj": "LOBJ#",
        "ts": "TS#",
        "ind": "IND#",
        "chunk": "CHUNK",
        "flags": "FLAGS",
        "property": "PROPERTY",
    },
)
_LOBCOMPPART: Final = _Kind(tables.LOBCOMPPART, {"part_obj": "PARTOBJ#", "l_obj": "LOBJ#"})
_LOBFRAG: Final = _Kind(
    tables.LOBFRAG,
    {"frag_obj": "FRAGOBJ#", "parent_obj": "PARENTOBJ#", "ts": "TS#", "ind": "INDFRAGOBJ#"},
)
_ECOL: Final = _Kind(
    tables.ECOL,
    {"tab_obj": "TABOBJ#", "col_num": "COLNUM", "guard_id": "GUARD_ID", "default": "BINARYDEFVAL"},
)
_ECOL_11: Final = _ECOL._replace(
    fields={field: column for field, column in _ECOL.fields.items() if field != "guard_id"}
)
_DEFERRED_STG: Final = _Kind(tables.DEFERRED_STG, {"obj": "OBJ#", "flags_stg": "FLAGS_STG"})
_TS: Final = _Kind(tables.TS, {"ts": "TS#", "block_size": "BLOCKSIZE"})


KINDS: Final = {
    "sys_user": _USER,
    "sys_obj": _OBJ,
    "sys_tab": _TAB,
    "sys_col": _COL,
    "sys_cdef": _CDEF,
    "sys_ccol": _CCOL,
    "sys_tabpart": _TABPART,
    "sys_tabcompart": _TABCOMPART,
    "sys_tabsubpart": _TABSUBPART,
    "sys_lob": _LOB,
    "sys_lob_comp_part": _LOBCOMPPART,
    "sys_lob_frag": _LOBFRAG,
    "sys_ts": _TS,
    "sys_ecol": _ECOL,
    "sys_deferredstg": _DEFERRED_STG,
    "sys_ind": _IND,
    "sys_icol": _ICOL,
}
"""By the fields of `SysRows`."""


def read_snapshot(
    connection: Connection, database: Database, names: Iterable[tuple[str, str]], scn: int
) -> Snapshot:
    """The dictionary of the named tables as of `scn`, with that of the SYS tables themselves.

    A table that is not there as of `scn` is not in the snapshot.

    Args:
        names: (owner, name), exactly as in the dictionary.

    Raises:
        OlrPgError: 3005, rows do not fit together.
        sqlalchemy.exc.DBAPIError: what Oracle reports.
    """
    wanted = dict.fromkeys((*names, *((SYS, table.name) for table in tables.SYS_TABLES)))
    rows = _Reader(connection, scn).rows(list(wanted))
    everything = select(tables.DATABASE.c.SUPPLEMENTAL_LOG_DATA_ALL)
    all_logged = connection.execute(everything).scalar_one() == "YES"
    found = join_tables(rows, _WHERE, all_columns_logged=all_logged)
    has_binary_xml = any(
        column.xml and column.type_code == BLOB for table in found for column in table.columns
    )
    tokens = read_xml_tokens(connection, scn) if has_binary_xml else NO_TOKENS
    snapshot = Snapshot(scn, database, found, rows, tokens)
    check_unique_tables(snapshot, _WHERE)
    return snapshot


def read_dictionary(
    oracle: OracleDatabase, names: Sequence[tuple[str, str]], scn: int | None = None
) -> Snapshot:
    """The dictionary of the named tables, with what the database is; see `read_snapshot`.

    Args:
        scn: as of which; None for now.

    Raises:
        OlrPgError: 3005, 7001 to 7009; 7005 where Oracle cannot read as of `scn` any more.
    """

    def read(connection: Connection) -> Snapshot:
        facts = read_facts(connection)
        at = facts.scn if scn is None else scn
        return read_snapshot(connection, facts.database, names, at)

    for _ in range(ATTEMPTS - 1):
        try:
            return oracle.read("reading the dictionary", read)
        except OlrPgError as error:
            # The undo of a busy database may be gone while the dictionary is being read.
            if error.code != SNAPSHOT_AGE or scn is not None:
                raise
    return oracle.read("reading the dictionary", read)


class _Reader:
    """Reads rows as of one SCN."""

    def __init__(self, connection: Connection, scn: int) -> None:
        self._connection = connection
        self._scn = scn
        # Guard columns came with 12.1 (dictionary §2.9).
        has_guards = (connection.dialect.server_version_info or ()) >= FIRST_WITH_GUARDS
        self._ecol = _ECOL if has_guards else _ECOL_11

    def rows(self, names: Sequence[tuple[str, str]]) -> sys_rows.SysRows:
        """The rows of the tables of those names, and what they refer to."""
        owners = list(dict.fromkeys(owner for owner, _ in names))
        users = self._where(_USER, sys_rows.UserRow, "NAME", owners, single=1)
        objects = [
            row
            for user in users
            for row in self._tables_of(user.user, [n for o, n in names if o == user.name])
        ]
        objs = [row.obj for row in objects]
        composite = self._where(_TABCOMPART, sys_rows.PartitionRow, "BO#", objs)
        lobs = self._where(_LOB, sys_rows.LobRow, "OBJ#", objs)
        lob_objs = [row.l_obj for row in lobs]
        lob_parts = self._where(_LOBCOMPPART, sys_rows.LobCompositePartRow, "LOBJ#", lob_objs)
        parents = [*lob_objs, *(row.part_obj for row in lob_parts)]
        fragments = self._where(_LOBFRAG, sys_rows.LobFragmentRow, "PARENTOBJ#", parents)
        segments = {
            *lob_objs,
            *(row.ind for row in lobs),
            *(row.frag_obj for row in fragments),
            *(row.ind for row in fragments),
        }
        segment_objects = self._where(
            _OBJ, sys_rows.ObjectRow, "OBJ#", sorted(segments - {0, *objs})
        )
        return sys_rows.SysRows(
            sys_user=users,
            sys_obj=[*objects, *segment_objects],
            sys_tab=self._where(_TAB, sys_rows.TabRow, "OBJ#", objs),
            sys_col=self._where(_COL, sys_rows.ColRow, "OBJ#", objs),
            sys_cdef=self._where(_CDEF, sys_rows.ConstraintRow, "OBJ#", objs),
            sys_ccol=self._where(_CCOL, sys_rows.ConstraintColumnRow, "OBJ#", objs),
            sys_tabpart=self._where(_TABPART, sys_rows.PartitionRow, "BO#", objs),
            sys_tabcompart=composite,
            sys_tabsubpart=self._where(
                _TABSUBPART, sys_rows.SubPartitionRow, "POBJ#", [row.obj for row in composite]
            ),
            sys_lob=lobs,
            sys_lob_comp_part=lob_parts,
            sys_lob_frag=fragments,
            sys_ts=self._select(_TS, sys_rows.TablespaceRow),
            sys_ecol=self._where(self._ecol, sys_rows.EcolRow, "TABOBJ#", objs),
            sys_deferredstg=self._where(_DEFERRED_STG, sys_rows.DeferredRow, "OBJ#", objs),
            sys_ind=self._where(_IND, sys_rows.IndexRow, "BO#", objs),
            sys_icol=self._where(_ICOL, sys_rows.IndexColumnRow, "BO#", objs),
        )

    def _tables_of(self, user: int, names: Sequence[str]) -> Iterator[sys_rows.ObjectRow]:
        for batch in _batches(names):
            conditions = {"OWNER#": [user], "NAME": batch, "TYPE#": [_TABLE]}
            yield from self._select(_OBJ, sys_rows.ObjectRow, conditions)

    def _where(
        self, kind: _Kind, row: type[_Row], column: str, values: Sequence[Any], **others: Any
    ) -> list[_Row]:
        """The rows where `column` is one of `values`, with `others` as further fields."""
        found: list[_Row] = []
        for batch in _batches(values):
            found += self._select(kind, row, {column: batch}, **others)
        return found

    def _select(
        self,
        kind: _Kind,
        row: type[_Row],
        conditions: Mapping[str, Sequence[Any]] | None = None,
        **others: Any,
    ) -> list[_Row]:
        table = as_of(kind.table, self._scn, "t")
        columns = [table.c[column].label(field) for field, column in kind.fields.items()]
        query = select(*columns, table.c.ROWID.label("row_id"))
        for column, values in (conditions or {}).items():
            query = query.where(table.c[column].in_(among(values)))
        return [
            row(**others, **{field: _plain(field, value) for field, value in found.items()})
            for found in self._connection.execute(query).mappings()
        ]


def _plain(field: str, value: Any) -> Any:
    if value is None:
        return _ABSENT.get(field, 0)
    return value.hex() if isinstance(value, bytes) else value


def _batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for at in range(0, len(values), BATCH):
        yield values[at : at + BATCH]
