"""Reads the dictionary of selected tables from the SYS tables as of one SCN (dictionary §3).

Each query covers a batch of tables, passes its values as binds, and reads its SYS table as of the
same SCN. So the rows are consistent even if the database changes while they are read.

Compressed segments and encrypted tablespaces: the facts come from the text of Oracle's views
DBA_TABLES and DBA_TAB_PARTITIONS (11.2 to 19c). These views find a segment by its header block, and
read the kind of compression from SEG$.SPARE1. TS$.FLAGS contains the same information as
DBA_TABLESPACES.ENCRYPTED, and can be read as of an SCN. V$ENCRYPTED_TABLESPACES shows the headers
of the data files, so it also lists a tablespace that is being encrypted (ALTER TABLESPACE …
ENCRYPTION ONLINE).

Keys, indexes and sequences (dictionary §2.5, §2.6): CDEF$.REFACT is 1 for ON DELETE CASCADE and 2
for ON DELETE SET NULL. CDEF$.ENABLED of a key is the OBJ# of its index. SEQ$.HIGHWATER is
LAST_NUMBER of DBA_SEQUENCES. CDEF$.CONDITION is the text of a check. COL$.DEFAULT$ is the text of a
default, of a virtual column, and of the hidden column of an index on an expression. The default of
an identity column names its sequence, ISEQ$$_ and a number. The texts of checks, defaults and
expressions are in Oracle's SQL. So the objects that they define are not created in the target; they
are listed with their text.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    String,
    Table,
    bindparam,
    func,
    select,
)
from sqlalchemy.sql.elements import quoted_name

from olr_pg.datatypes.binary_xml import NO_TOKENS, QualifiedName, XmlTokens
from olr_pg.dictionary import sys_rows
from olr_pg.dictionary.lob_delivery import BLOB
from olr_pg.dictionary.model import Snapshot
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.dictionary.snapshot_file import check_unique_tables
from olr_pg.dictionary.stored_segments import ENCRYPTED, Compression, holds_rows
from olr_pg.dictionary.structure import (
    INT64_MAX,
    INT64_MIN,
    NO_STRUCTURE,
    ForeignKey,
    Index,
    LeftOut,
    LeftOutKind,
    OnDelete,
    Sequence,
    Structure,
    UniqueKey,
)
from olr_pg.dictionary.sys_rows import SYS_COLUMNS, absent
from olr_pg.dictionary.sys_tables import join_tables
from olr_pg.errors import OlrPgError
from olr_pg.oracle import tables
from olr_pg.oracle.allowed_queries import forbidden, rows_if_allowed
from olr_pg.oracle.driver.bounded_calls import SNAPSHOT_AGE
from olr_pg.oracle.facts import FIRST_CDB, read_facts
from olr_pg.oracle.flashback import as_of
from olr_pg.oracle.supplemental import read_levels
from olr_pg.oracle.tables import among, batches, bound

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from collections.abc import Sequence as Sequential

    from sqlalchemy import Connection
    from sqlalchemy import Table as SysTable

    from olr_pg.dictionary.model import Database
    from olr_pg.dictionary.model import Table as SourceTable
    from olr_pg.dictionary.sys_rows import IndexRow, SysRows
    from olr_pg.oracle.oracle_connection import OracleDatabase


_COMPRESSED: Final = 0x800
_HYBRID_COLUMNAR: Final = 0x2000000 | 0x4000000 | 0x8000000
"""Bits of SEG$.SPARE1 for the kinds of hybrid columnar compression."""


def read_compression(connection: Connection, rows: SysRows, scn: int) -> Compression:
    """Return the compressed segments of the tables of `rows`, and of their partitions.

    Raises:
        sqlalchemy.exc.DBAPIError: any error of Oracle.
    """
    objs = [row.obj for row in rows.sys_tab]
    composite = [row.obj for row in rows.sys_tabcompart]
    found = [
        *_segments(connection, scn, (tables.TAB, "OBJ#"), objs),
        *_segments(connection, scn, (tables.TABPART, "BO#"), objs),
        *_segments(connection, scn, (tables.TABSUBPART, "POBJ#"), composite),
    ]
    return Compression(
        frozenset(obj for obj, _ in found),
        frozenset(obj for obj, bits in found if bits & _HYBRID_COLUMNAR),
    )


def _segments(
    connection: Connection, scn: int, owner: tuple[Table, str], objs: Sequential[int]
) -> Iterator[tuple[int, int]]:
    """Yield (OBJ#, SPARE1) of the compressed segments of tables or partitions."""
    part, segment = as_of(owner[0], scn, "t"), as_of(tables.SEG, scn, "s")
    place = [part.c[name] == segment.c[name] for name in ("FILE#", "BLOCK#", "TS#")]
    for batch in batches(objs):
        query = (
            select(part.c["OBJ#"], segment.c.SPARE1)
            .select_from(part.join(segment, place[0] & place[1] & place[2]))
            .where(part.c[owner[1]].in_(among(batch)))
            .where(func.bitand(segment.c.SPARE1, bound(_COMPRESSED)) == bound(_COMPRESSED))
        )
        yield from ((int(obj), int(bits)) for obj, bits in connection.execute(query))


def encrypted_now(connection: Connection, database: Database) -> frozenset[int]:
    """Return TS# of the container's encrypted tablespaces; empty if the view cannot be read.

    Raises:
        sqlalchemy.exc.DBAPIError: any error of Oracle.
    """
    columns = tables.ENCRYPTED_TABLESPACES.c
    query = select(columns["TS#"]).where(bound("YES") == columns.ENCRYPTEDTS)
    if (connection.dialect.server_version_info or ()) >= FIRST_CDB:
        # In the root, the view lists the tablespaces of all containers. TS# is unique only within a
        # container.
        query = query.where(columns.CON_ID.in_(among([0, database.con_id])))
    return frozenset(int(ts) for (ts,) in rows_if_allowed(connection, query) or ())


ATTEMPTS: Final = 3
FIRST_WITH_GUARDS: Final = (12, 1)
_GUARDS: Final = "GUARD_ID"
"""A column of ECOL$ since 12.1. It belongs to guard columns: hidden columns whose bits show which
added columns a row stores (dictionary §2.9).
"""
SYS: Final = "SYS"
_TABLE: Final = 2
"""OBJ$.TYPE# of a table."""

_RECYCLED: Final = "BIN$"

_NEXT_USER: Final = "_NEXT_USER"
"""USER$.NAME of the row whose USER# the next user gets."""

_WHERE: Final = "the dictionary of the database"
_Row = TypeVar("_Row", bound=sys_rows.SysRow)


KINDS: Final = {
    "sys_user": tables.USER,
    "sys_obj": tables.OBJ,
    "sys_tab": tables.TAB,
    "sys_col": tables.COL,
    "sys_cdef": tables.CDEF,
    "sys_ccol": tables.CCOL,
    "sys_tabpart": tables.TABPART,
    "sys_tabcompart": tables.TABCOMPART,
    "sys_tabsubpart": tables.TABSUBPART,
    "sys_lob": tables.LOB,
    "sys_lob_comp_part": tables.LOBCOMPPART,
    "sys_lob_frag": tables.LOBFRAG,
    "sys_ts": tables.TS,
    "sys_ecol": tables.ECOL,
    "sys_deferredstg": tables.DEFERRED_STG,
    "sys_ind": tables.IND,
    "sys_icol": tables.ICOL,
    "sys_indpart": tables.INDPART,
    "sys_con": tables.CON,
    "sys_com": tables.COM,
}
"""The SYS table for each field of `SysRows`; `SYS_COLUMNS` names the columns."""


def read_snapshot(
    connection: Connection, database: Database, names: Iterable[tuple[str, str]], scn: int
) -> Snapshot:
    """Read the dictionary of the named tables as of `scn`; also read the definitions of the SYS
    tables themselves.

    A table that does not exist as of `scn` is not in the snapshot.

    Args:
        names: (owner, name), exactly as in the dictionary.

    Raises:
        OlrPgError: 3005 the rows are inconsistent.
        sqlalchemy.exc.DBAPIError: any error of Oracle.
    """
    asked = {table.name: as_of(table, scn, "t") for table in tables.BESIDE_TABLES}
    denied = forbidden(connection, asked)
    beside = [table for table in tables.BESIDE_TABLES if table.name not in denied]
    followed = (*tables.SYS_TABLES, *beside)
    wanted = dict.fromkeys((*names, *((SYS, table.name) for table in followed)))
    encrypted = encrypted_now(connection, database)
    reader = _Reader(connection, scn, encrypted, frozenset(table.name for table in beside))
    rows = reader.rows(list(wanted))
    compression = read_compression(connection, rows, scn)
    levels = map(int, read_levels(connection))
    rows = rows.model_copy(update=dict(zip(sys_rows.DATABASE_LEVELS, levels, strict=True)))
    all_logged = rows.supp_log_db_all == 1
    found = join_tables(rows, _WHERE, all_columns_logged=all_logged, compression=compression)
    has_binary_xml = any(
        column.xml and column.type_code == BLOB for table in found for column in table.columns
    )
    tokens = read_xml_tokens(connection, scn) if has_binary_xml else NO_TOKENS
    snapshot = Snapshot(scn, database, found, rows, tokens)
    check_unique_tables(snapshot, _WHERE)
    return snapshot


def read_dictionary(
    oracle: OracleDatabase, names: Sequential[tuple[str, str]], scn: int | None = None
) -> Snapshot:
    """Read the dictionary of the named tables and the database's properties; see `read_snapshot`.

    Args:
        scn: the SCN to read as of; None for the current SCN.

    Raises:
        OlrPgError: 3005, 7001 to 7009; 7005 if Oracle can no longer read as of `scn`.
    """

    def read(connection: Connection) -> Snapshot:
        facts = read_facts(connection)
        at = facts.scn if scn is None else scn
        return read_snapshot(connection, facts.database, names, at)

    for _ in range(ATTEMPTS - 1):
        try:
            return oracle.read("reading the dictionary", read)
        except OlrPgError as error:
            # In a busy database, the undo can expire while the dictionary is read: retry with a new
            # SCN.
            if error.code != SNAPSHOT_AGE or scn is not None:
                raise
    return oracle.read("reading the dictionary", read)


def read_unchanged(
    oracle: OracleDatabase, names: Sequential[tuple[str, str]], scn: int
) -> tuple[Snapshot, list[str]]:
    """Read the present dictionary, which is the one as of an earlier SCN if no DDL has changed the
    named tables since then. Oracle needs no undo for this.

    Each DDL of a table, of its partitions or of its indexes changes the row of the table in OBJ$,
    also TRUNCATE (MTIME, which DBA_OBJECTS shows as LAST_DDL_TIME). ORA_ROWSCN is the SCN of the
    last change of a row, or a higher one, because Oracle stores one SCN per block (Oracle Database
    SQL Language Reference, “ORA_ROWSCN Pseudocolumn”). Statistics do not change OBJ$.

    Args:
        scn: the earlier SCN.

    Returns:
        The dictionary with this SCN, and the tables that DDL may have changed since then, among
        them those that do not exist now.

    Raises:
        OlrPgError: as `read_dictionary`.
    """
    snapshot = read_dictionary(oracle, names)
    rows = snapshot.sys_rows
    assert rows is not None
    users = {row.user: row.name for row in rows.sys_user}
    there = {(users.get(row.owner, ""), row.name) for row in rows.sys_obj}
    gone = [".".join(pair) for pair in names if pair not in there]
    numbers = sorted(
        {row.obj for row in rows.sys_obj}
        | {row.obj for row in (*rows.sys_tabpart, *rows.sys_tabcompart, *rows.sys_indpart)}
        | {row.obj for row in rows.sys_tabsubpart}
    )
    changed = oracle.read(
        "looking for DDL since an earlier SCN",
        lambda connection: _changed_since(connection, numbers, scn),
    )
    return replace(snapshot, scn=scn), sorted({*gone, *changed})


def _changed_since(connection: Connection, numbers: Sequential[int], scn: int) -> set[str]:
    """Return the names of the objects whose rows in OBJ$ may have changed after an SCN."""
    obj, user = tables.OBJ.alias("o").c, tables.USER.alias("u").c
    found = set[str]()
    for batch in batches(numbers):
        query = (
            select(user.NAME, obj.NAME)
            .where(obj["OWNER#"] == user["USER#"], obj["OBJ#"].in_(among(batch)))
            .where(bound(scn) < obj.ORA_ROWSCN)
        )
        found |= {f"{owner}.{name}" for owner, name in connection.execute(query)}
    return found


def read_users(connection: Connection) -> list[sys_rows.UserRow]:
    """Read the current rows of USER$ of all users and roles.

    Raises:
        sqlalchemy.exc.DBAPIError: any error of Oracle.
    """
    user = tables.USER.c
    query = select(user["USER#"], user.NAME, user.SPARE1, user.ROWID).where(
        bound(_NEXT_USER) != user.NAME
    )
    return [
        sys_rows.make_row(
            sys_rows.UserRow,
            {"user": number, "name": name, "spare1": bits or 0, "single": 1, "row_id": row_id},
        )
        for number, name, bits, row_id in connection.execute(query)
    ]


def read_table_names(connection: Connection, scn: int | None = None) -> set[tuple[str, str]]:
    """Return owner and name of each table, without Oracle's own tables and those in the recycle
    bin.

    Args:
        scn: the SCN to read as of; None for the present.

    Raises:
        sqlalchemy.exc.DBAPIError: any error of Oracle.
    """
    obj, user = (
        table.alias(name) if scn is None else as_of(table, scn, name)
        for table, name in ((tables.OBJ, "o"), (tables.USER, "u"))
    )
    query = (
        select(user.c.NAME, obj.c.NAME)
        .select_from(obj.join(user, obj.c["OWNER#"] == user.c["USER#"]))
        .where(obj.c["TYPE#"] == bound(_TABLE))
    )
    return {
        (str(owner), str(name))
        for owner, name in connection.execute(query)
        if not is_oracle_schema(owner) and not name.startswith(_RECYCLED)
    }


def read_sys_objects(connection: Connection, owner: int) -> dict[str, tuple[int, int]]:
    """Read the current OBJ# and DATAOBJ# of the SYS tables that are followed, by name.

    Args:
        owner: USER# of SYS.

    Raises:
        sqlalchemy.exc.DBAPIError: any error of Oracle.
    """
    obj, names = tables.OBJ.c, [one.name for one in (*tables.SYS_TABLES, *tables.BESIDE_TABLES)]
    query = select(obj.NAME, obj["OBJ#"], obj["DATAOBJ#"]).where(
        obj["OWNER#"] == bound(owner), obj["TYPE#"] == bound(_TABLE), obj.NAME.in_(among(names))
    )
    found = connection.execute(query)
    return {str(name): (int(number), int(segment or 0)) for name, number, segment in found}


class _Reader:
    """Reads rows of the SYS tables as of one SCN.

    Args:
        encrypted: TS# of tablespaces that are encrypted, including those that TS$ does not mark as
            encrypted.
        beside: names of the tables in `tables.BESIDE_TABLES` that the account can read.
    """

    def __init__(
        self,
        connection: Connection,
        scn: int,
        encrypted: frozenset[int],
        beside: frozenset[str],
    ) -> None:
        self._beside = beside
        self._connection = connection
        self._scn = scn
        self._encrypted = encrypted
        self._has_guards = (connection.dialect.server_version_info or ()) >= FIRST_WITH_GUARDS

    def rows(self, names: Sequential[tuple[str, str]]) -> sys_rows.SysRows:
        """Read the SYS rows of the named tables, and the rows that these rows refer to."""
        owners = list(dict.fromkeys(owner for owner, _ in names))
        users = self._where("sys_user", sys_rows.UserRow, "NAME", owners, single=1)
        objects = self._tables_of({user.name: user.user for user in users}, names)
        objs = [row.obj for row in objects]
        parts = self._where("sys_tabpart", sys_rows.PartitionRow, "BO#", objs)
        composite = self._where("sys_tabcompart", sys_rows.PartitionRow, "BO#", objs)
        subparts = self._where(
            "sys_tabsubpart", sys_rows.SubPartitionRow, "POBJ#", [row.obj for row in composite]
        )
        indexes = self._where("sys_ind", sys_rows.IndexRow, "BO#", objs)
        with_rows = [*objs, *(row.obj for row in parts), *(row.obj for row in subparts)]
        lobs = self._where("sys_lob", sys_rows.LobRow, "OBJ#", objs)
        lob_objs = [row.l_obj for row in lobs]
        lob_parts = self._where(
            "sys_lob_comp_part", sys_rows.LobCompositePartRow, "LOBJ#", lob_objs
        )
        parents = [*lob_objs, *(row.part_obj for row in lob_parts)]
        fragments = self._where("sys_lob_frag", sys_rows.LobFragmentRow, "PARENTOBJ#", parents)
        segments = {
            *lob_objs,
            *(row.ind for row in lobs),
            *(row.frag_obj for row in fragments),
            *(row.ind for row in fragments),
        }
        organised = [row.obj for row in indexes if holds_rows(row)]
        index_parts = self._where("sys_indpart", sys_rows.PartitionRow, "BO#", organised)
        # DDL on a partition is followed by the partition's name.
        named = {row.obj for row in (*parts, *composite, *index_parts)}
        named |= {row.obj for row in indexes} | {row.obj for row in subparts}
        others = self.objects((segments | named) - {0, *objs})
        constraints = self._where("sys_cdef", sys_rows.ConstraintRow, "OBJ#", objs)
        numbers = [row.con for row in constraints] if tables.CON.name in self._beside else []
        commented = objs if tables.COM.name in self._beside else []
        return sys_rows.SysRows(
            sys_user=users,
            sys_obj=[*objects, *others],
            sys_tab=self._where("sys_tab", sys_rows.TabRow, "OBJ#", objs),
            sys_col=self._where("sys_col", sys_rows.ColRow, "OBJ#", objs),
            sys_cdef=constraints,
            sys_con=self._where("sys_con", sys_rows.ConstraintNameRow, "CON#", numbers),
            sys_com=self._where("sys_com", sys_rows.CommentRow, "OBJ#", commented),
            sys_ccol=self._where("sys_ccol", sys_rows.ConstraintColumnRow, "OBJ#", objs),
            sys_tabpart=parts,
            sys_tabcompart=composite,
            sys_tabsubpart=subparts,
            sys_lob=lobs,
            sys_lob_comp_part=lob_parts,
            sys_lob_frag=fragments,
            sys_ts=self._tablespaces(),
            sys_ecol=self._where("sys_ecol", sys_rows.EcolRow, "TABOBJ#", objs),
            sys_deferredstg=self._where("sys_deferredstg", sys_rows.DeferredRow, "OBJ#", with_rows),
            sys_ind=indexes,
            sys_icol=self._where("sys_icol", sys_rows.IndexColumnRow, "BO#", objs),
            sys_indpart=index_parts,
        )

    def objects(self, numbers: Iterable[int]) -> list[sys_rows.ObjectRow]:
        """Read the rows of OBJ$ with these object numbers; for partitions, they contain the
        names.
        """
        return self._where("sys_obj", sys_rows.ObjectRow, "OBJ#", sorted(numbers))

    def _tablespaces(self) -> list[sys_rows.TablespaceRow]:
        return [
            replace(row, flags=(row.flags or 0) | ENCRYPTED) if row.ts in self._encrypted else row
            for row in self._select("sys_ts", sys_rows.TablespaceRow, {})
        ]

    def _tables_of(
        self, users: Mapping[str, int], names: Sequential[tuple[str, str]]
    ) -> list[sys_rows.ObjectRow]:
        """Read the rows of OBJ$ of the named tables, ordered by user as in `users`.

        Args:
            users: USER# by name.
        """
        wanted = [(users[owner], name) for owner, name in names if owner in users]
        found = dict[int, list[sys_rows.ObjectRow]]()
        for batch in batches(sorted(wanted)):
            # More than `batch`: each owner with each name. In return, Oracle can use the indexes.
            owners, listed = sorted({owner for owner, _ in batch}), set(batch)
            values: dict[str, list[Any]] = {
                "OWNER#": owners,
                "NAME": sorted({name for _, name in batch}),
                "TYPE#": [_TABLE],
            }
            for row in self._select("sys_obj", sys_rows.ObjectRow, values):
                if (row.owner, row.name) in listed:
                    found.setdefault(row.owner, []).append(row)
        return [row for user in users.values() for row in found.get(user, ())]

    def _where(
        self, section: str, row: type[_Row], column: str, values: Sequential[Any], **others: Any
    ) -> list[_Row]:
        """Read the rows whose `column` is one of `values`; add `others` to each row as further
        fields.
        """
        found: list[_Row] = []
        for batch in batches(values):
            found += self._select(section, row, {column: list(batch)}, **others)
        return found

    def _select(
        self, section: str, row: type[_Row], among: Mapping[str, list[Any]], **others: Any
    ) -> list[_Row]:
        """Read the rows whose columns have one of the values that `among` lists for each."""
        query = _rows_query(section, tuple(among), has_guards=self._has_guards)
        listed = {f"v{place}": values for place, values in enumerate(among.values())}
        result = self._connection.execute(query, {"scn": self._scn, **listed})
        fields = tuple(result.keys())
        return [
            sys_rows.make_row(
                row, others | dict(zip(fields, map(_plain, fields, found), strict=True))
            )
            for found in result
        ]


@cache
def _rows_query(section: str, among: tuple[str, ...], *, has_guards: bool) -> Select[Any]:
    """Return the query for rows of a SYS table; the columns `among` have one of the values in the
    parameters ``v0``, ``v1`` …, and the parameter ``scn`` is the SCN.

    It is kept, because SQLAlchemy needs a third of a query's time to make it and recognise it.
    """
    table = as_of(KINDS[section], bindparam("scn", type_=BigInteger), "t")
    columns = [
        table.c[column].label(field)
        for field, column in SYS_COLUMNS[section].items()
        if has_guards or column != _GUARDS
    ]
    conditions = [
        table.c[column].in_(bindparam(f"v{place}", expanding=True))
        for place, column in enumerate(among)
    ]
    return select(*columns, table.c.ROWID.label("row_id")).where(*conditions)


def _plain(field: str, value: Any) -> Any:
    if value is None:
        return absent(field)
    return value.hex() if isinstance(value, bytes) else value


_DEFAULT: Final = 0
"""FLAGS of the default token set. Tables use it unless another token set is specified."""

_ATTRIBUTE: Final = 1


def read_xml_tokens(connection: Connection, scn: int) -> XmlTokens:
    """Read the token tables as of `scn`; empty if the database has no XML DB token set.

    Raises:
        sqlalchemy.exc.DBAPIError: any error of Oracle.
    """
    sets = as_of(_xdb("XDB$TTSET", TOKSUF=String, FLAGS=Integer), scn, "t")
    query = select(sets.c.TOKSUF).where(bound(_DEFAULT) == sets.c.FLAGS)
    suffix = connection.execute(query).scalar()
    if suffix is None:
        return NO_TOKENS
    spaces = _rows(connection, _xdb(f"X$NM{suffix}", NMSPCURI=String, ID=LargeBinary), scn)
    columns = {"NMSPCID": LargeBinary, "LOCALNAME": String, "FLAGS": LargeBinary, "ID": LargeBinary}
    names = _rows(connection, _xdb(f"X$QN{suffix}", **columns), scn)
    return XmlTokens(
        {_hex(token): uri for uri, token in spaces},
        {
            _hex(token): QualifiedName(_hex(space), name, bool(flags and flags[-1] & _ATTRIBUTE))
            for space, name, flags, token in names
        },
    )


def _xdb(name: str, **columns: Any) -> Table:
    return Table(
        quoted_name(name, quote=True),
        MetaData(),
        *(Column(quoted_name(column, quote=True), kind) for column, kind in columns.items()),
        schema=quoted_name("XDB", quote=True),
    )


def _rows(connection: Connection, table: Table, scn: int) -> Iterable[Any]:
    return connection.execute(select(as_of(table, scn, "t")))


def _hex(raw: bytes | None) -> str:
    return (raw or b"").hex().upper()


_CHECK, _PRIMARY, _UNIQUE, _FOREIGN = 1, 2, 3, 4
"""Values of CDEF$.TYPE#."""

_NORMAL, _BITMAP = 1, 2
_IS_UNIQUE, _FUNCTIONAL = 0x1, 0x10
_UNUSABLE: Final = 0x1 | 0x400
"""Values of IND$.TYPE#, and bits of IND$.PROPERTY and IND$.FLAGS."""

_BY_ITSELF: Final = frozenset({3, 4, 5, 6, 8})
"""IND$.TYPE# of indexes that belong to the storage of a table (cluster, index-organised table,
LOB).
"""

_IDENTITY: Final = "ISEQ$$_"
_SEQUENCE: Final = 6
"""OBJ$.TYPE# of a sequence."""

_REASONS: Final[dict[LeftOutKind, str]] = {
    "default": "defaults are not created",
    "identity column": "the values come from the source; the sequence is created",
    "virtual column": "the column is computed, and not replicated",
}
_ON_DELETE: Final[dict[int, OnDelete]] = {1: "cascade", 2: "set null"}


def read_structure(oracle: OracleDatabase, snapshot: Snapshot) -> Structure:
    """Read the structure of the snapshot's tables as of the snapshot's SCN; Oracle's own tables are
    left out.

    Raises:
        OlrPgError: 7001 to 7009; a missing privilege on SYS.CON$ or SYS.SEQ$ is also an error.
    """
    rows = snapshot.sys_rows
    if rows is None:
        return NO_STRUCTURE
    return oracle.read(
        "reading keys, indexes and sequences",
        lambda connection: _StructureReader(connection, snapshot).structure(),
    )


def read_sequences(
    connection: Connection, owners: Collection[str], scn: int
) -> tuple[Sequence, ...]:
    """Read the sequences of these users as of `scn`."""
    return tuple(_sequences(connection, owners, scn))


class _StructureReader:
    def __init__(self, connection: Connection, snapshot: Snapshot) -> None:
        assert snapshot.sys_rows is not None
        self._connection = connection
        self._scn = snapshot.scn
        self._rows = snapshot.sys_rows
        self._tables = {t.obj: t for t in snapshot.tables if t.owner != SYS}
        self._columns: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for column in self._rows.sys_ccol:
            self._columns[column.con].append((column.pos, column.int_col))

    def structure(self) -> Structure:
        keys = [row for row in self._rows.sys_cdef if row.obj in self._tables]
        named = (_CHECK, _UNIQUE, _FOREIGN)
        names = self._names([row.con for row in keys if row.type in named])
        texts = self._texts()
        unique = [
            UniqueKey(**self._of(row.obj, names[row.con]), columns=columns)
            for row in keys
            if row.type == _UNIQUE and row.enabled and (columns := self._key(row.obj, row.con))
        ]
        own = {row.enabled for row in keys if row.type in (_PRIMARY, _UNIQUE)}
        indexes, left_out = self._indexes(own, texts)
        left_out += self._checks(names)
        left_out += self._defaults(texts)
        owners = {table.owner for table in self._tables.values()}
        return Structure(
            unique_keys=tuple(unique),
            indexes=tuple(indexes),
            foreign_keys=tuple(self._foreign_keys(names)),
            sequences=read_sequences(self._connection, owners, self._scn),
            left_out=tuple(left_out),
        )

    def _of(self, obj: int, name: str) -> dict[str, Any]:
        table = self._tables[obj]
        return {"owner": table.owner, "table": table.name, "name": name}

    def _key(self, obj: int, con: int) -> tuple[str, ...]:
        return _named(self._tables[obj], [intcol for _, intcol in sorted(self._columns[con])])

    def _names(self, constraints: list[int]) -> dict[int, str]:
        rows = self._select(tables.CON, "CON#", constraints, "CON#", "NAME")
        return {row["CON#"]: row["NAME"] for row in rows}

    def _select(
        self, table: SysTable, column: str, values: list[int], *wanted: str
    ) -> Iterator[dict[str, Any]]:
        return _select(self._connection, self._scn, table, column, values, *wanted)

    def _texts(self) -> dict[tuple[int, int], str]:
        """Return the texts of COL$.DEFAULT$ by OBJ# and INTCOL#."""
        rows = self._select(tables.COL, "OBJ#", sorted(self._tables), "OBJ#", "INTCOL#", "DEFAULT$")
        return {
            (row["OBJ#"], row["INTCOL#"]): text
            for row in rows
            if (text := (row["DEFAULT$"] or "").strip())
        }

    def _checks(self, names: dict[int, str]) -> Iterator[LeftOut]:
        """Yield the enabled check constraints. NOT NULL is not among the check constraints, because
        it has its own type of constraint.
        """
        numbers = [
            row.con
            for row in self._rows.sys_cdef
            if row.type == _CHECK and row.enabled and row.obj in self._tables
        ]
        for row in self._select(tables.CDEF, "CON#", numbers, "CON#", "OBJ#", "CONDITION"):
            name = names[row["CON#"]]
            condition = (row["CONDITION"] or "").strip()
            yield LeftOut(
                **self._of(row["OBJ#"], name),
                kind="check constraint",
                reason="check constraints are not created",
                definition=f"ALTER TABLE {self._quoted(row['OBJ#'])} ADD CONSTRAINT"
                f' "{name}" CHECK ({condition})',
            )

    def _defaults(self, texts: dict[tuple[int, int], str]) -> Iterator[LeftOut]:
        for obj, table in sorted(self._tables.items()):
            for column in table.columns:
                text = texts.get((obj, column.intcol))
                if text is None or column.hidden or text.upper() == "NULL":
                    continue
                kind: LeftOutKind = "virtual column" if column.virtual else "default"
                change = f'MODIFY "{column.name}" DEFAULT {text}'
                if _IDENTITY in text:
                    kind = "identity column"
                elif column.virtual:
                    change = f'ADD "{column.name}" GENERATED ALWAYS AS ({text})'
                yield LeftOut(
                    **self._of(obj, column.name),
                    kind=kind,
                    reason=_REASONS[kind],
                    definition=f"ALTER TABLE {self._quoted(obj)} {change}",
                )

    def _quoted(self, obj: int) -> str:
        table = self._tables[obj]
        return f'"{table.owner}"."{table.name}"'

    def _indexes(
        self, own: set[int], texts: dict[tuple[int, int], str]
    ) -> tuple[list[Index], list[LeftOut]]:
        columns: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for column in self._rows.sys_icol:
            columns[column.obj].append((column.pos, column.int_col))
        rows = [
            row
            for row in self._rows.sys_ind
            if row.bo in self._tables and row.obj not in own and row.type not in _BY_ITSELF
        ]
        objects = self._select(tables.OBJ, "OBJ#", [row.obj for row in rows], "OBJ#", "NAME")
        names = {row["OBJ#"]: row["NAME"] for row in objects}
        made, left_out = list[Index](), list[LeftOut]()
        for row in rows:
            table = self._tables[row.bo]
            listed = [intcol for _, intcol in sorted(columns[row.obj])]
            found = _named(table, listed)
            reason = _obstacle(row, found)
            if reason is not None:
                parts = [self._part(row.bo, intcol, texts) for intcol in listed]
                left_out.append(
                    LeftOut(
                        **self._of(row.bo, names[row.obj]),
                        reason=reason,
                        definition=self._index_statement(row, names[row.obj], parts),
                    )
                )
            elif tuple(listed) != table.key:
                unique = bool(row.property & _IS_UNIQUE)
                one = Index(**self._of(row.bo, names[row.obj]), columns=found, unique=unique)
                made.append(one)
        return made, left_out

    def _part(self, obj: int, intcol: int, texts: dict[tuple[int, int], str]) -> str | None:
        """Return the column or the expression of an index part; None if unknown."""
        column = next((c for c in self._tables[obj].columns if c.intcol == intcol), None)
        if column is not None and not column.hidden:
            return f'"{column.name}"'
        return texts.get((obj, intcol))

    def _index_statement(self, row: IndexRow, name: str, parts: list[str | None]) -> str:
        told = [part for part in parts if part is not None]
        if row.type not in (_NORMAL, _BITMAP) or len(told) < len(parts) or not told:
            return ""
        unique = "UNIQUE " if row.property & _IS_UNIQUE else ""
        return f'CREATE {unique}INDEX "{name}" ON {self._quoted(row.bo)} ({", ".join(told)})'

    def _foreign_keys(self, names: dict[int, str]) -> Iterator[ForeignKey]:
        numbers = [
            row.con
            for row in self._rows.sys_cdef
            if row.type == _FOREIGN and row.enabled and row.obj in self._tables
        ]
        wanted = ("CON#", "OBJ#", "ROBJ#", "RCON#", "REFACT")
        for row in self._select(tables.CDEF, "CON#", numbers, *wanted):
            parent = self._tables.get(row["ROBJ#"])
            if parent is None:
                continue
            yield ForeignKey(
                **self._of(row["OBJ#"], names[row["CON#"]]),
                columns=self._key(row["OBJ#"], row["CON#"]),
                parent_owner=parent.owner,
                parent=parent.name,
                parent_columns=self._key(parent.obj, row["RCON#"]),
                on_delete=_ON_DELETE.get(row["REFACT"] or 0, "no action"),
            )


def _named(table: SourceTable, intcols: list[int]) -> tuple[str, ...]:
    """Return the names of the columns; empty if a column is hidden."""
    names = {column.intcol: column.name for column in table.columns if not column.hidden}
    return tuple(names[i] for i in intcols) if all(i in names for i in intcols) else ()


def _obstacle(row: IndexRow, columns: tuple[str, ...]) -> str | None:
    if row.property & _FUNCTIONAL or not columns:
        return "the index uses an expression"
    if row.type not in (_NORMAL, _BITMAP):
        return "the index is a domain index"
    return "the index is unusable in the source" if row.flags & _UNUSABLE else None


def _sequences(connection: Connection, owners: Collection[str], scn: int) -> Iterator[Sequence]:
    users = {
        row["USER#"]: row["NAME"]
        for row in _select(connection, scn, tables.USER, "NAME", sorted(owners), "USER#", "NAME")
    }
    wanted = ("OBJ#", "OWNER#", "NAME", "TYPE#")
    objects = {
        row["OBJ#"]: (users[row["OWNER#"]], row["NAME"])
        for row in _select(connection, scn, tables.OBJ, "OWNER#", sorted(users), *wanted)
        if row["TYPE#"] == _SEQUENCE
    }
    columns = ("OBJ#", "INCREMENT$", "MINVALUE", "MAXVALUE", "CYCLE#", "CACHE", "HIGHWATER")
    rows = _select(connection, scn, tables.SEQ, "OBJ#", list(objects), *columns)
    for row in sorted(rows, key=lambda row: objects[row["OBJ#"]]):
        owner, name = objects[row["OBJ#"]]
        yield Sequence(
            owner=owner,
            name=name,
            next=_int64(row["HIGHWATER"]),
            increment=_int64(row["INCREMENT$"]),
            minimum=_int64(row["MINVALUE"]),
            maximum=_int64(row["MAXVALUE"]),
            cycle=bool(row["CYCLE#"]),
            cache=_int64(row["CACHE"]),
        )


def _select(
    connection: Connection,
    scn: int,
    table: SysTable,
    column: str,
    values: Sequential[object],
    *wanted: str,
) -> Iterator[dict[str, Any]]:
    """Read the `wanted` columns of the rows whose `column` is one of `values`, as of `scn`."""
    old = as_of(table, scn, "t")
    columns = [old.c[name].label(name) for name in wanted]
    for batch in batches(values):
        query = select(*columns).where(old.c[column].in_(among(batch)))
        yield from map(dict, connection.execute(query).mappings())


def _int64(value: Any) -> int:
    return min(max(int(value), INT64_MIN), INT64_MAX)
