"""Describes the structures of the redo: each as a table of members with offset, kind and meaning.

For kernels, modules take single offsets from a structure as constant integers; dump and mask use
the whole structure. The complete meaning of each member is in docs/internals/redo-format.md, in the
section that the structure names. The section also says whether the member was seen in real bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

WIDTHS: Final = {
    "u1": 1, "u2": 2, "u4": 4, "i2": 2, "i4": 4, "x1": 1, "x2": 2, "x4": 4, "b2": 2, "b4": 4,
    "xid": 8, "uba": 8, "scn": 8, "rid": 6, "op": 2, "fb": 1, "sfb": 1, "lob": 10, "*": 0,
}  # fmt: skip
"""The size in bytes of each kind of member. u: unsigned; i: signed; x: unsigned, printed in
hexadecimal; b: unsigned, big-endian in every file; fb: flags of a row piece; sfb: flags of a
supplemental header; `*`: the start of a part whose length is stored elsewhere.
"""


class Member(NamedTuple):
    """A member of a structure.

    Attributes:
        name: Oracle's name, as in a dump.
        at: offset from the structure's beginning, in bytes.
        kind: a key of `WIDTHS`.
        what: its meaning, if the name is not enough.
        shown: whether a dump prints the member in the list of members. If False, the member is
            printed in another way or not at all.
    """

    name: str
    at: int
    kind: str
    what: str = ""
    shown: bool = True

    @property
    def end(self) -> int:
        """Return the offset after the member."""
        return self.at + WIDTHS[self.kind]


class RedoStructure(NamedTuple):
    """A structure: a field of a vector, a header, or a part of one.

    Attributes:
        name: Oracle's name of the structure, if it has one.
        section: the section of redo-format that describes the structure.
        size: size in bytes; the smallest size if there are several, or if more data follows.
        members: its members, in the order in which a dump prints them.
    """

    name: str
    section: str
    size: int
    members: tuple[Member, ...]

    @property
    def shown(self) -> tuple[Member, ...]:
        """Return the members that a dump prints."""
        return tuple(member for member in self.members if member.shown)

    def member(self, name: str) -> Member:
        """Return a member by its name."""
        return next(member for member in self.members if member.name == name)

    def number(self, data: bytes, name: str, *, big: bool) -> int:
        """Return the value of a member as an unsigned integer. The structure is at the beginning of
        `data`.
        """
        member = self.member(name)
        return int.from_bytes(data[member.at : member.end], "big" if big else "little")

    def at(self, name: str) -> int:
        """Return the offset of a member."""
        return self.member(name).at

    def end(self, name: str) -> int:
        """Return the offset after a member: the minimum size of a field that contains it."""
        return self.member(name).end


def structure(name: str, section: str, size: int, table: str) -> RedoStructure:
    """Create a structure from a table. Each line of the table has the offset, kind, name and
    meaning of a member.

    If the kind is in parentheses, the list of members in a dump does not contain the member. In a
    name, ``_`` represents a space.
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
