"""Tables and columns as of an SCN: immutable values, independent of the source.

The module also decides which column types can be replicated, and why the others cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from olr_pg.datatypes.binary_xml import NO_TOKENS, XmlTokens
from olr_pg.dictionary.structure import NO_STRUCTURE, Structure

if TYPE_CHECKING:
    from olr_pg.dictionary.sys_rows import SysRows


@dataclass(frozen=True, slots=True)
class LobSegment:
    """The storage of the LOB values of a table or of one of its partitions.

    Attributes:
        obj, dataobj: OBJ# and DATAOBJ# of the LOB segment, or of a partition's part of it
            (LOBFRAG$).
        index_obj, index_dataobj: OBJ# and DATAOBJ# of the LOB index; None if unknown.
        block_size: the block size of the segment's tablespace, in bytes; None if unknown.
    """

    obj: int
    dataobj: int | None = None
    index_obj: int | None = None
    index_dataobj: int | None = None
    block_size: int | None = None


@dataclass(frozen=True, slots=True)
class Lob:
    """The storage of a LOB column's values, from LOB$ and related tables; None for unknown
    properties. Facts: dictionary §2.7, values-and-lobs §15.4, §17.

    Attributes:
        segments: the segment of the table itself, and one for each partition with rows.
        securefile: True for SECUREFILE, False for BASICFILE.
        chunk_blocks: the number of blocks in a BASICFILE page.
        nologging: whether the redo may lack the data of LOB pages.
        compressed, deduplicated: whether these SECUREFILE options are used.
        encrypted: whether the bytes are encrypted, so that the column cannot be replicated.
        encrypted_in: the names of the encrypted tablespaces that contain its segments; empty if
            there are none, or if this is unknown.
    """

    segments: tuple[LobSegment, ...] = ()
    securefile: bool | None = None
    chunk_blocks: int | None = None
    nologging: bool = False
    compressed: bool = False
    deduplicated: bool = False
    encrypted: bool = False
    encrypted_in: str = ""


ROW_TYPES: Final = frozenset(
    {1, 2, 8, 9, 12, 23, 24, 69, 96, 100, 101, 180, 181, 182, 183, 208, 231, 252}
)
"""COL$.TYPE# of the types whose values are stored in the row itself (values-and-lobs §1)."""

LOB_TYPES: Final = frozenset({112, 113, 119, 127})
"""COL$.TYPE# of the types for which the row stores a LOB locator: CLOB, BLOB, JSON, VECTOR."""

_OTHER_TYPES: Final = {
    58: "opaque types are not supported, except XMLTYPE that is stored as CLOB or binary XML",
    105: "MLSLABEL columns are not supported",
    106: "MLSLABEL columns are not supported",
    111: "REF columns are not supported",
    114: "BFILE columns are not supported, because the data is outside the database",
    115: "CFILE columns are not supported, because the data is outside the database",
    121: "object types are not supported",
    122: "nested tables are not supported",
    123: "VARRAY columns are not supported",
    178: "TIME is not a type of Oracle's SQL",
    179: "TIME WITH TIME ZONE is not a type of Oracle's SQL",
}


def unsupported_reason(
    type_code: int,
    *,
    virtual: bool,
    encrypted: bool,
    lob_encrypted: bool,
    lob_encrypted_in: str = "",
) -> str | None:
    """Return why the values of a column cannot be replicated; None if they can.

    Args:
        lob_encrypted_in: the names of the encrypted tablespaces that contain the column's LOB
            segments.
    """
    if virtual:
        return "virtual columns are computed and never in redo"
    if encrypted:
        return "the column is encrypted (TDE)"
    if lob_encrypted:
        return "the LOB is encrypted, so the redo contains only cipher text"
    if lob_encrypted_in:
        return f"the LOB is stored in {lob_encrypted_in}, so the redo contains only cipher text"
    if type_code in ROW_TYPES or type_code in LOB_TYPES:
        return None
    return _OTHER_TYPES.get(type_code, f"type code {type_code} is not known")


class KeyKind(Enum):
    """The kind of key that identifies the rows of a table (dictionary §8)."""

    PRIMARY = "primary key"
    UNIQUE = "unique key"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A row of ECOL$: a column that was added with a default that Oracle did not write into the
    existing rows.

    Existing rows do not store the column; its value in them is the default (values-and-lobs §14).

    Attributes:
        default: BINARYDEFVAL: the default in the form of a row's bytes; None if unknown.
        guard_id: the column's bit in the table's guard column; None if the column was added as NOT
            NULL, which needs no guard column.
    """

    default: bytes | None = None
    guard_id: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, from COL$.

    Attributes:
        name: the name in the dictionary.
        segcol: SEGCOL#, the position in the stored row, from 1; 0 if it is not stored (virtual).
        intcol: INTCOL#, the internal order.
        col: COL#, the order that users see; 0 if hidden, invisible or unused.
        type_code: COL$.TYPE# (values-and-lobs §1).
        length: the length in bytes.
        char_length: COL$.SPARE3, the length in characters; None if unknown.
        precision: None for NULL in the dictionary.
        scale: None for NULL in the dictionary.
        charset_id: the Oracle character set id; None for types without one.
        charset_form: 1 for the database's character set, 2 for the national one, 3 for a set that
            differs from the declared one (`dictionary.true_charsets`); None for types without one.
        nullable: False for NOT NULL and key columns.
        hidden: whether the column is not delivered, because it is an internal, unused or guard
            column.
        virtual: whether the column is computed; it is then never in the redo.
        stored_as_lob: whether it is a VARCHAR2 or RAW column whose rows store a LOB locator
            (values-and-lobs §15.4); False for LOB types.
        encrypted: whether the bytes in the row are encrypted by column encryption (TDE).
        lob: the storage of LOB values; None if it is unknown, and for other columns.
        added: the default of a column that was added with a default that existing rows do not
            store; else None.
        guard: whether this is the guard column: a hidden column whose bits show which added columns
            a row stores.
        xml: whether the column is a CLOB or BLOB that contains XMLTYPE documents: a CLOB contains
            text, a BLOB binary XML.
        raw_xml: whether its binary XML is delivered as stored; always False in a snapshot.
    """

    name: str
    segcol: int
    intcol: int
    col: int
    type_code: int
    length: int
    precision: int | None = None
    scale: int | None = None
    charset_id: int | None = None
    charset_form: int | None = None
    nullable: bool = True
    hidden: bool = False
    virtual: bool = False
    stored_as_lob: bool = False
    encrypted: bool = False
    lob: Lob | None = None
    xml: bool = False
    char_length: int | None = None
    added: AddedColumn | None = None
    guard: bool = False
    raw_xml: bool = False

    @property
    def unsupported(self) -> str | None:
        """Why the values of this column cannot be replicated; None if they can."""
        return unsupported_reason(
            self.type_code,
            virtual=self.virtual,
            encrypted=self.encrypted,
            lob_encrypted=self.lob is not None and self.lob.encrypted,
            lob_encrypted_in=self.lob.encrypted_in if self.lob is not None else "",
        )


class _Computed:
    """What a table computes once. It is no field, so it is neither compared nor pickled."""

    __slots__ = ("_delivered",)

    _delivered: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Table(_Computed):
    """A table with all properties that are needed to decode its redo.

    Attributes:
        obj: OBJ#.
        dataobj: DATAOBJ#; None if the table itself has no segment.
        columns: all columns, including hidden and virtual ones, in the order of SEGCOL#, then
            INTCOL#.
        partitions: OBJ# of the other objects with rows of the table: partitions, sub-partitions,
            and the index of an index-organised table.
        cluster_columns: TAB$.CLUCOLS, the number of cluster key columns, which are not stored in
            the table's rows.
        key: INTCOL# of the key columns, in the order of the key.
        refusal: why the table cannot be replicated; None if it can.
        segments: DATAOBJ# of each of `partitions`; 0 for one without a segment. If `segments` is
            empty, the numbers are unknown, and OBJ# is used instead, which is correct until a
            partition is truncated or moved.
        index_organised: whether the rows are in the primary key's index.
        row_dependencies: whether the table has ROWDEPENDENCIES, so that each row contains an SCN;
            None if unknown.
        con_id: the id of the container, if the dictionary has several containers
            (`dictionary.containers`); else 0.
        container: the name of the container if `owner` begins with it, because several containers
            have a schema of that name; else empty.
    """

    owner: str
    name: str
    obj: int
    dataobj: int | None
    columns: tuple[Column, ...]
    partitions: tuple[int, ...] = ()
    cluster_columns: int = 0
    key_kind: KeyKind = KeyKind.NONE
    key: tuple[int, ...] = ()
    refusal: str | None = None
    segments: tuple[int, ...] = ()
    index_organised: bool = False
    row_dependencies: bool | None = None
    con_id: int = field(default=0, repr=False)
    container: str = field(default="", repr=False)

    @property
    def full_name(self) -> str:
        """``OWNER.NAME``, or ``CONTAINER.OWNER.NAME``."""
        return f"{self.owner}.{self.name}"

    @property
    def source_owner(self) -> str:
        """The owner's name without its container."""
        return self.owner.removeprefix(f"{self.container}.") if self.container else self.owner

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the table: the full name, and the name without its container."""
        plain = f"{self.source_owner}.{self.name}"
        return (self.full_name, plain) if self.container else (plain,)

    @property
    def object_key(self) -> int:
        """``con_id << 32 | OBJ#``; unique across containers."""
        return self.con_id << 32 | self.obj

    @property
    def delivered(self) -> tuple[Column, ...]:
        """The columns that clients receive, in SEGCOL# order: stored, not hidden, supported."""
        try:
            return self._delivered
        except AttributeError:
            found = tuple(
                c for c in self.columns if c.segcol > 0 and not c.hidden and c.unsupported is None
            )
            object.__setattr__(self, "_delivered", found)
            return found

    @property
    def obstacle(self) -> str | None:
        """Why the table cannot be replicated: its `refusal`, or that none of its columns can be
        replicated; None if the table can be replicated.
        """
        if self.refusal is not None or self.delivered:
            return self.refusal
        reasons = "; ".join(f"{column.name}: {column.unsupported}" for column in self.left_out)
        return f"none of its columns can be replicated{': ' if reasons else ''}{reasons}"

    @property
    def guard(self) -> Column | None:
        """The guard column (`Column.guard`), if an added column needs it; else None."""
        guard = next((c for c in self.columns if c.guard and c.segcol > 0), None)
        if guard is None:  # most tables: saves computing the delivered columns
            return None
        guarded = (c.added is not None and c.added.guard_id is not None for c in self.delivered)
        return guard if any(guarded) else None

    @property
    def left_out(self) -> tuple[Column, ...]:
        """The columns that users see but clients do not receive; `Column.unsupported` is the
        reason.
        """
        return tuple(c for c in self.columns if not c.hidden and c.unsupported is not None)


@dataclass(frozen=True, slots=True)
class Database:
    """The database (container) of a snapshot; None for unknown properties.

    Attributes:
        name: DB_NAME, which log headers also contain.
        dbid: the container's DBID; in a CDB, the PDB's own DBID. Log headers contain the DBID of
            the CDB, so `dbid` must equal theirs only if `con_id` is 0. Otherwise, a log is matched
            by its resetlogs id and `name` (seen in a real log).
        con_id: 0 for a non-CDB, 1 for the root, 3 or higher for a PDB.
        resetlogs: the resetlogs ids of the current incarnation and of its ancestors, the current
            one first.
        activation: the activation id at the SCN of the snapshot. Logs can have another one, because
            each switchover changes it.
        charset, ncharset: Oracle's names of the character sets (NLS_CHARACTERSET,
            NLS_NCHAR_CHARACTERSET), as the database declares them.
        true_charsets: (pattern of OWNER.NAME.COLUMN, Oracle's name of the character set that the
            bytes of these columns really have). The first matching pattern applies.
        timezone: DBTIMEZONE: an offset such as ``+00:00``, or a region name.
        containers: the names of all containers, if there are several; the other attributes then
            describe the first container.
    """

    name: str
    con_id: int = 0
    con_name: str | None = None
    dbid: int | None = None
    resetlogs: tuple[int, ...] = ()
    activation: int | None = None
    big_endian: bool | None = None
    charset: str = "AL32UTF8"
    ncharset: str = "AL16UTF16"
    timezone: str = "+00:00"
    true_charsets: tuple[tuple[str, str], ...] = ()
    containers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The dictionary of one container as of `scn`, or the joined dictionary of several containers
    (`dictionary.containers`).

    Attributes:
        sys_rows: the rows of the SYS tables from which the tables were built, if known. If
            `sys_rows` is known and `tables` includes the SYS tables, later DDL can be followed in
            the redo (`dictionary.followed_dictionary`).
        xml_tokens: the names in binary XML.
        structure: indexes, foreign keys and sequences, if known.
        members: the dictionary of each container, if there are several. `tables` contains the
            tables of all members.
    """

    scn: int
    database: Database
    tables: tuple[Table, ...] = field(repr=False)
    sys_rows: SysRows | None = field(default=None, repr=False)
    xml_tokens: XmlTokens = field(default=NO_TOKENS, repr=False)
    structure: Structure = field(default=NO_STRUCTURE, repr=False)
    members: tuple[Snapshot, ...] = field(default=(), repr=False)

    @property
    def containers(self) -> tuple[Snapshot, ...]:
        """The dictionary of each container."""
        return self.members or (self,)

    def find(self, owner: str, name: str) -> Table | None:
        """Return the table with exactly that owner and name, or None."""
        for table in self.tables:
            if table.name == name and table.owner == owner:
                return table
        return None
