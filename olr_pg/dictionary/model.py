"""Tables and columns as of an SCN: immutable values, independent of the source."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from olr_pg.datatypes.binary_xml import NO_TOKENS, XmlTokens
from olr_pg.dictionary.column_support import unsupported_reason
from olr_pg.dictionary.lob import Lob
from olr_pg.dictionary.structure import NO_STRUCTURE, Structure

if TYPE_CHECKING:
    from olr_pg.dictionary.sys_rows import SysRows


class KeyKind(Enum):
    """The origin of the row identity of a table (dictionary §8)."""

    PRIMARY = "primary key"
    UNIQUE = "unique key"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A row of ECOL$: a column that was added with a default, without rewriting the rows.

    Older rows lack the column, and its value in them is the default (values-and-lobs §14).

    Attributes:
        default: BINARYDEFVAL, in row encoding; None if unknown.
        guard_id: the column's bit in the table's guard column; None for the NOT NULL form.
    """

    default: bytes | None = None
    guard_id: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, from COL$.

    Attributes:
        name: as in the dictionary.
        segcol: SEGCOL#, 1-based position in the stored row; 0 if not stored (virtual).
        intcol: INTCOL#, the internal order.
        col: COL#, the order that users see; 0 if hidden, invisible or unused.
        type_code: COL$.TYPE# (values-and-lobs §1).
        length: bytes.
        char_length: COL$.SPARE3, the length in characters; None if unknown.
        precision: None for NULL in the dictionary.
        scale: None for NULL in the dictionary.
        charset_id: Oracle character set id; None for types without one.
        charset_form: 1 database, 2 national character set; None for types without one.
        nullable: False for NOT NULL and key columns.
        hidden: not delivered (hidden, unused, guard columns).
        virtual: computed, never in redo.
        stored_as_lob: a VARCHAR2 or RAW column whose row bytes are a LOB locator (values-and-lobs
            §15.4); False for the LOB types themselves.
        encrypted: by column encryption (TDE): the row bytes are encrypted.
        lob: how LOB values are stored; None for other columns, and if unknown.
        added: for a column that was added with a default that old rows do not store; else None.
        guard: whether this is the hidden column whose bits show which added columns a row stores.
        xml: for a CLOB or BLOB with the documents of an XMLTYPE: whether as text or as binary XML.
        raw_xml: whether its binary XML is delivered as stored; never set in a snapshot.
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


@dataclass(frozen=True, slots=True)
class Table:
    """A table with everything that decoding its redo needs.

    Attributes:
        obj: OBJ#.
        dataobj: DATAOBJ#; None if the table itself has no segment.
        columns: every column, hidden and virtual ones too, in SEGCOL# then INTCOL# order.
        partitions: OBJ# of each further segment with rows: partitions, sub-partitions, and for an
            index-organised table its index.
        cluster_columns: TAB$.CLUCOLS; the key columns are not in the row image.
        key: INTCOL# of the key columns in key order.
        refusal: why the table cannot be replicated; None if it can.
        segments: DATAOBJ# of each of `partitions`, 0 without a segment; empty if unknown, then the
            OBJ# is assumed, which is right until the partition is truncated or moved.
        index_organised: the rows are in the primary key's index.
        row_dependencies: ROWDEPENDENCIES: each row contains its SCN; None if unknown.
        con_id: the container, if the dictionary has several (`dictionary.containers`); else 0.
        container: the name of the container that `owner` begins with, if several have a schema of
            that name; else empty.
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
        """The owner's name in its own container."""
        return self.owner.removeprefix(f"{self.container}.") if self.container else self.owner

    @property
    def names(self) -> tuple[str, ...]:
        """All its names: with its container if needed, and without."""
        plain = f"{self.source_owner}.{self.name}"
        return (self.full_name, plain) if self.container else (plain,)

    @property
    def object_key(self) -> int:
        """``con_id << 32 | OBJ#``; unique across containers."""
        return self.con_id << 32 | self.obj

    @property
    def delivered(self) -> tuple[Column, ...]:
        """The columns that clients receive, in SEGCOL# order: stored, not hidden, supported."""
        return tuple(
            c for c in self.columns if c.segcol > 0 and not c.hidden and c.unsupported is None
        )

    @property
    def obstacle(self) -> str | None:
        """Why the table cannot be replicated: `refusal`, or because none of its columns can be."""
        if self.refusal is not None or self.delivered:
            return self.refusal
        reasons = "; ".join(f"{column.name}: {column.unsupported}" for column in self.left_out)
        return f"none of its columns can be replicated{': ' if reasons else ''}{reasons}"

    @property
    def guard(self) -> Column | None:
        """The guard column, if an added column needs it."""
        guard = next((c for c in self.columns if c.guard and c.segcol > 0), None)
        if guard is None:  # the usual case; the delivered columns take longer to determine
            return None
        guarded = (c.added is not None and c.added.guard_id is not None for c in self.delivered)
        return guard if any(guarded) else None

    @property
    def left_out(self) -> tuple[Column, ...]:
        """The columns that users see and clients do not receive; `unsupported` is the reason."""
        return tuple(c for c in self.columns if not c.hidden and c.unsupported is not None)


@dataclass(frozen=True, slots=True)
class Database:
    """The database (container) of a snapshot; None for unknown properties.

    Attributes:
        name: DB_NAME, as in log headers.
        dbid: of the container (the PDB's own DBID in a CDB). Log headers carry the DBID of the CDB,
            so it is comparable with theirs only where `con_id` is 0; elsewhere a log is matched by
            its resetlogs id, `activation` and `name` (real log).
        con_id: 0 non-CDB, 1 root, 3 and up PDBs.
        resetlogs: resetlogs ids of the current and earlier incarnations, current first.
        activation: of the current incarnation.
        charset, ncharset: Oracle names (NLS_CHARACTERSET, NLS_NCHAR_CHARACTERSET).
        timezone: DBTIMEZONE, ``+00:00`` form or a region name.
        containers: the names of all containers, if there are several; the other attributes are
            those of the first.
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
    containers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The dictionary of one container as of `scn`, or of several (`dictionary.containers`).

    Attributes:
        sys_rows: the rows of the SYS tables from which the tables were built, if known: with them,
            and the SYS tables among `tables`, later DDL can be followed in the redo
            (`dictionary.followed_dictionary`).
        xml_tokens: the names in binary XML.
        structure: indexes, foreign keys and sequences, if known.
        members: the dictionary of each container, if there are several; `tables` contains the same
            tables.
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
        """Find the table of that exact owner and name, or None."""
        for table in self.tables:
            if table.name == name and table.owner == owner:
                return table
        return None
