"""How a structure of the redo is written down: a table of members with offset, kind and meaning.

Kernels take offsets from it by name, as frozen integers; dump and mask take the structure. What a
member means in full, and whether it was seen in real bytes, says the structure's section of
docs/internals/redo-format.md.
"""

from __future__ import annotations

from typing import Final, NamedTuple

WIDTHS: Final = {
    "u1": 1, "u2": 2, "u4": 4, "i2": 2, "i4": 4, "x1": 1, "x2": 2, "x4": 4, "b2": 2, "b4": 4,
    "xid": 8, "uba": 8, "scn": 8, "rid": 6, "op": 2, "fb": 1, "sfb": 1, "lob": 10, "*": 0,
}  # fmt: skip
"""The bytes of each kind of member: u unsigned, i signed, x unsigned and written in hexadecimal, b
big endian whatever the file; fb and sfb flags of a row piece and of a supplemental header; `*` is
where something begins whose length is told elsewhere."""


class Member(NamedTuple):
    """A member of a structure.

    Attributes:
        name: Oracle's, as a dump writes it.
        at: bytes from the structure's beginning.
        kind: of `WIDTHS`.
        what: its meaning, as far as the name does not tell.
        shown: whether a dump writes it with the others, and not in a way of its own or not at all.
    """

    name: str
    at: int
    kind: str
    what: str = ""
    shown: bool = True

    @property
    def end(self) -> int:
        """Return the offset behind it."""
        return self.at + WIDTHS[self.kind]


class RedoStructure(NamedTuple):
    """A structure: a field of a vector, a header, or a part of one.

    Attributes:
        name: Oracle's, where it has one.
        section: of redo-format that tells all that is known of it.
        size: bytes; where there are several sizes, or more behind it, the least.
        members: in the order in which a dump writes them.
    """

    name: str
    section: str
    size: int
    members: tuple[Member, ...]

    @property
    def shown(self) -> tuple[Member, ...]:
        """Return the members that a dump writes."""
        return tuple(member for member in self.members if member.shown)

    def member(self, name: str) -> Member:
        """Return a member by its name."""
        return next(member for member in self.members if member.name == name)

    def number(self, data: bytes, name: str, *, big: bool) -> int:
        """Read a member of the structure at the beginning of `data`, as an unsigned integer."""
        member = self.member(name)
        return int.from_bytes(data[member.at : member.end], "big" if big else "little")

    def at(self, name: str) -> int:
        """Return the offset of a member."""
        return self.member(name).at

    def end(self, name: str) -> int:
        """Return the offset behind a member: what a field must have to hold it."""
        return self.member(name).end


def structure(name: str, section: str, size: int, table: str) -> RedoStructure:
    """Read a structure from a table: per line offset, kind, name and meaning.

    A kind in parentheses is not shown; in names ``_`` stands for a space.
    """
    return RedoStructure(name, section, size, tuple(map(_member, table.strip().splitlines())))


def _member(line: str) -> Member:
    at, kind, name, *what = line.split(None, 3)
    return Member(
        name=name.replace("_", " "),
        at=int(at),
        kind=kind.strip("()"),
        what="".join(what).strip(),
        shown=not kind.startswith("("),
    )
