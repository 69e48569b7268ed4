"""Indexes, constraints and sequences. The load creates these objects in a new target, in addition
to tables with columns and keys.

Decoding redo does not need these objects. In the snapshot format they are in the optional object
``structure``, whose keys are the fields of the classes here (docs/dictionary-snapshot.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Iterable

Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], Field(min_length=1, strict=False)]

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
Int64 = Annotated[int, Field(ge=INT64_MIN, le=INT64_MAX)]

OnDelete = Literal["no action", "cascade", "set null"]
LeftOutKind = Literal["index", "check constraint", "default", "identity column", "virtual column"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class _OfTable(_Part):
    """A part of the structure that belongs to the table ``owner.table``."""

    owner: Name
    table: Name
    name: Name

    @property
    def full_name(self) -> str:
        """``OWNER.NAME`` of the table."""
        return f"{self.owner}.{self.table}"


_Of = TypeVar("_Of", bound=_OfTable)


class UniqueKey(_OfTable):
    """A unique constraint; `columns` are in the order of the key."""

    columns: Names


class Index(_OfTable):
    """An index that belongs to no primary or unique key; `columns` are in the order of the
    index.
    """

    columns: Names
    unique: bool = False


class ForeignKey(_OfTable):
    """An enabled foreign key: `columns` reference `parent_columns`, in the same order."""

    columns: Names
    parent_owner: Name
    parent: Name
    parent_columns: Names
    on_delete: OnDelete = "no action"

    @property
    def parent_name(self) -> str:
        """``OWNER.NAME`` of the referenced table."""
        return f"{self.parent_owner}.{self.parent}"


class Sequence(_Part):
    """A sequence. Limits that need more than 64 bits are reduced to 64 bits, because PostgreSQL
    supports no larger limits.

    Attributes:
        next: the next value that is certainly unused: SEQ$.HIGHWATER, which is
            DBA_SEQUENCES.LAST_NUMBER.
        cache: the number of values that Oracle keeps in memory; 0 for no cache.
    """

    owner: Name
    name: Name
    next: Int64
    increment: Int64 = 1
    minimum: Int64 = 1
    maximum: Int64 = INT64_MAX
    cycle: bool = False
    cache: Annotated[int, Field(ge=0, le=INT64_MAX)] = 20

    @property
    def full_name(self) -> str:
        """``OWNER.NAME``."""
        return f"{self.owner}.{self.name}"


class LeftOut(_OfTable):
    """An object that is not created in the target, with the reason.

    Attributes:
        name: the name of the index or constraint; for a default, the name of its column.
        definition: Oracle's SQL statement, from which you can create the object by hand; empty if
            unknown.
    """

    reason: Name
    kind: LeftOutKind = "index"
    definition: str = ""


class Structure(_Part):
    """The structure of a snapshot's tables."""

    unique_keys: Annotated[tuple[UniqueKey, ...], Field(strict=False)] = ()
    indexes: Annotated[tuple[Index, ...], Field(strict=False)] = ()
    foreign_keys: Annotated[tuple[ForeignKey, ...], Field(strict=False)] = ()
    sequences: Annotated[tuple[Sequence, ...], Field(strict=False)] = ()
    left_out: Annotated[tuple[LeftOut, ...], Field(strict=False)] = ()


NO_STRUCTURE: Final = Structure()
"""The structure of a snapshot that has none."""


def structure_by_table(structure: Structure) -> dict[str, Structure]:
    """Return the structure of each table that has one, by ``OWNER.NAME``. Sequences belong to no
    table.
    """
    keys = _by_table(structure.unique_keys)
    indexes = _by_table(structure.indexes)
    foreign = _by_table(structure.foreign_keys)
    left_out = _by_table(structure.left_out)
    return {
        name: Structure(
            unique_keys=tuple(keys.get(name, ())),
            indexes=tuple(indexes.get(name, ())),
            foreign_keys=tuple(foreign.get(name, ())),
            left_out=tuple(left_out.get(name, ())),
        )
        for name in keys.keys() | indexes.keys() | foreign.keys() | left_out.keys()
    }


def _by_table(parts: Iterable[_Of]) -> dict[str, list[_Of]]:
    found = dict[str, list[_Of]]()
    for part in parts:
        found.setdefault(part.full_name, []).append(part)
    return found
