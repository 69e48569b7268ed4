"""Translates packages: a package becomes a schema with the same name, which contains its routines.

PL/pgSQL has no packages, and its sessions have no variables. A routine that uses a variable of its
package is refused; the reason contains the variable's name. Constants, types, exceptions and
cursors of the package have no state, so they are declared in each routine that uses them.

`read_head` parses the head of a function or procedure: name, parameters and return type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.schema.plsql.cursor import Cursor
from olr_pg.schema.plsql.routine_sql import RoutineSql
from olr_pg.schema.plsql.types import Constant, Parameter, Signature, Typed, read_type
from olr_pg.schema.translating import UntranslatableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from olr_pg.dictionary.inventory import UnitSource
    from olr_pg.schema.relations import Relations


class Head(NamedTuple):
    """The head of a routine: everything before its body.

    Attributes:
        returns: the return type; None for a procedure.
        is_definer: whether the routine runs with the rights of its owner.
        is_fixed: whether the routine is declared DETERMINISTIC: for the same arguments it always
            returns the same value.
    """

    kind: str
    name: str
    parameters: tuple[Parameter, ...]
    returns: Typed | None
    is_definer: bool
    is_fixed: bool


def read_head(cursor: Cursor, sql: RoutineSql) -> Head:
    """Read the head of a routine, up to its body or to the end of a declaration. Add the parameters
    to the known variables.

    Raises:
        UntranslatableError: PostgreSQL does not have a type or option of the head.
    """
    kind = "FUNCTION" if cursor.take("FUNCTION") else "PROCEDURE"
    if kind == "PROCEDURE":
        cursor.expect("PROCEDURE")
    name = cursor.path()[-1]
    parameters = _parameters(cursor, sql)
    returns = None
    if cursor.take("RETURN"):
        returns = read_type(cursor, sql.relations, sql.owner, sql.types, sized=False)
        if any(one.mode for one in parameters):
            raise UntranslatableError("a function with OUT parameters: make it a procedure")
    is_definer, is_fixed = _options(cursor)
    return Head(kind, name, tuple(parameters), returns, is_definer, is_fixed)


def _parameters(cursor: Cursor, sql: RoutineSql) -> list[Parameter]:
    found = list[Parameter]()
    while cursor.take("(") if not found else cursor.take(","):
        name = cursor.name()
        given, taken = cursor.take("IN"), cursor.take("OUT")
        cursor.take("NOCOPY")
        typed = read_type(cursor, sql.relations, sql.owner, sql.types, sized=False)
        default = ""
        if cursor.take(":=") or cursor.take("DEFAULT"):
            default = f" DEFAULT {sql.value(cursor.until(',', ')'), typed.fact)}"
        mode = ("INOUT " if given else "OUT ") if taken else ""
        found.append(Parameter(name, mode, typed, default))
        sql.types = {**sql.types, name: typed}
    if found:
        cursor.expect(")")
    return found


def _options(cursor: Cursor) -> tuple[bool, bool]:
    """Read the options before the body. Return (whether the routine runs with its owner's rights,
    whether it is deterministic).
    """
    is_definer, is_fixed = True, False
    while not (cursor.take("IS") or cursor.take("AS") or cursor.take(";") or cursor.is_done):
        if cursor.take("DETERMINISTIC"):
            is_fixed = True
        elif cursor.take("AUTHID", "CURRENT_USER"):
            is_definer = False
        elif not (
            cursor.take("AUTHID", "DEFINER")
            or cursor.take("PARALLEL_ENABLE")
            or cursor.take("RESULT_CACHE")
            or _relies_on(cursor)
        ):
            option = cursor.word() or "(none)"
            advice = ": use RETURNS SETOF and RETURN NEXT" if option == "PIPELINED" else ""
            raise UntranslatableError(f"the option {option} before its body{advice}")
    return is_definer, is_fixed


def _relies_on(cursor: Cursor) -> bool:
    """Read RELIES_ON (…), which Oracle ignores."""
    if not cursor.take("RELIES_ON", "("):
        return False
    cursor.list_until(")")
    return True


_PRAGMA: Final = "PRAGMA"


class Package(NamedTuple):
    """The parts of a package's text.

    Attributes:
        declarations: the declarations, without their semicolons.
        routines: the texts of the routines, with their bodies if they have one.
        is_initialised: whether the package has initialisation statements.
    """

    declarations: list[str]
    routines: list[str]
    is_initialised: bool = False


def split_package(text: str) -> Package:
    """Split the text of a specification or a body.

    Raises:
        UntranslatableError: the text cannot be parsed.
    """
    cursor = Cursor(text)
    cursor.expect("PACKAGE")
    cursor.take("BODY")
    cursor.path()
    while not (cursor.take("IS") or cursor.take("AS")):
        cursor.step()
    found = Package([], [])
    while cursor.word() not in ("END", "BEGIN", ""):
        if cursor.word() in ("FUNCTION", "PROCEDURE"):
            place = cursor.place
            _skip_routine(cursor)
            found.routines.append(cursor.text_since(place))
            continue
        found.declarations.append(cursor.until(";"))
        cursor.expect(";")
    return found._replace(is_initialised=cursor.word() == "BEGIN")


def _skip_routine(cursor: Cursor) -> None:
    """Move past a routine: its head, its declarations, and its statements with their END."""
    cursor.until("IS", "AS", ";")
    if cursor.take(";"):
        return
    cursor.step()
    while cursor.word() != "BEGIN":
        if cursor.word() in ("FUNCTION", "PROCEDURE"):
            _skip_routine(cursor)
        else:
            cursor.until(";")
            cursor.expect(";")
    depth = 0
    while True:
        word = cursor.word()
        cursor.step()
        if word in ("BEGIN", "CASE", "IF", "LOOP"):
            depth += 1
        elif word == "END":
            depth -= 1
            if depth == 0:
                break
            if cursor.word() in ("IF", "LOOP", "CASE"):
                cursor.step()
    if cursor.word() != ";":
        cursor.name()
    cursor.expect(";")


class Signatures:
    """Finds the routine to which a call refers.

    Args:
        sources: the PL/SQL units of the inventory.
    """

    def __init__(self, sources: Iterable[UnitSource], relations: Relations) -> None:
        self._relations = relations
        self._sources = {(one.owner, one.name, one.kind): one.text for one in sources}
        self._found: dict[tuple[str, str, str], Signature | None] = {}
        self._packages: dict[tuple[str, str], dict[str, list[str]]] = {}

    def find(self, owner: str, package: str, names: list[str]) -> Signature | None:
        """Return the routine that a name means in the code of this owner and package; None if it is
        not found.
        """
        owner, *names = names if len(names) == 3 else [owner, *names]
        if len(names) == 2 and not self._routines(owner, names[0]):
            kinds = ("FUNCTION", "PROCEDURE")
            if any((*names, kind) in self._sources for kind in kinds):
                owner, *names = names  # the owner of a routine that is in no package
        if len(names) == 1 and package and names[0] in self._routines(owner, package):
            names = [package, *names]
        package, name = names if len(names) == 2 else ("", names[0])
        key = owner, package, name
        if key not in self._found:
            self._found[key] = None  # stays None if parsing fails
            self._found[key] = self._read(*key)
        return self._found[key]

    def is_shared(self, package: str) -> bool:
        """Return whether several schemas have a package of this name."""
        bodies = [key for key in self._sources if key[1:] == (package, "PACKAGE BODY")]
        return len(bodies) > 1

    def is_overloaded(self, owner: str, package: str, name: str) -> bool:
        """Return whether several routines of a package have this name."""
        return len(self._routines(owner, package).get(name, ())) > 1

    def _routines(self, owner: str, package: str) -> Mapping[str, list[str]]:
        """Return the texts of a package's routines by name. A routine's text comes from the package
        body if the body contains the routine, otherwise from the specification.
        """
        if (owner, package) not in self._packages:
            found = dict[str, list[str]]()
            for kind in ("PACKAGE BODY", "PACKAGE"):
                text = self._sources.get((owner, package, kind))
                try:
                    routines = split_package(text).routines if text else []
                except UntranslatableError:
                    routines = []
                own = dict[str, list[str]]()
                for routine in routines:
                    if kind == "PACKAGE" or has_body(routine):
                        own.setdefault(_name(routine), []).append(routine)
                found = {**own, **found}
            self._packages[owner, package] = found
        return self._packages[owner, package]

    def _read(self, owner: str, package: str, name: str) -> Signature | None:
        if package:
            texts = self._routines(owner, package).get(name, [])
        else:
            kinds = ("FUNCTION", "PROCEDURE")
            texts = [self._sources.get((owner, name, kind), "") for kind in kinds]
        texts = [text for text in texts if text]
        if len(texts) != 1:
            return None
        try:
            head = read_head(Cursor(texts[0]), RoutineSql(self._relations, owner))
        except UntranslatableError:
            return None
        schema, target = target_of(self._relations, owner, package, name)
        full = ".".join(part for part in (owner, package, name) if part)
        return Signature(full, schema, target, head.parameters, head.returns)


def target_of(relations: Relations, owner: str, package: str, name: str) -> tuple[str, str]:
    """Return (schema, name) of a routine in the target."""
    if package:
        return relations.name(package), relations.name(name)
    return relations.code_name(owner, name)


def _name(routine: str) -> str:
    cursor = Cursor(routine)
    cursor.step()
    return cursor.name()


def has_body(routine: str) -> bool:
    """Return whether the text of a routine has a body, and is not only a declaration."""
    cursor = Cursor(routine)
    cursor.until("IS", "AS", ";")
    return cursor.word() != ";"


def constants_and_state(
    package: Package, relations: Relations, owner: str
) -> tuple[list[Constant], dict[str, str]]:
    """Return a package's constants; and for each of its other declared names, the reason why a
    routine that uses it cannot be translated.
    """
    constants, state = list[Constant](), dict[str, str]()
    shared = {name for name, _ in shared_declarations(package)}
    for text in package.declarations:
        cursor = Cursor(text)
        if cursor.word() == _PRAGMA:
            continue
        if cursor.word() in ("CURSOR", "TYPE", "SUBTYPE"):
            continue
        name = cursor.name()
        if name in shared:
            continue
        if cursor.take("CONSTANT"):
            try:
                constants.append(_constant(cursor, name, relations, owner))
                continue
            except UntranslatableError:
                pass
        state[name] = (
            f"the routine uses the variable {name} of its package: use a setting (set_config) or"
            " a table"
        )
    return constants, state


def shared_declarations(package: Package) -> list[tuple[str, str]]:
    """Return (name, text) of the declarations that each routine can repeat, because they have no
    state: types, exceptions with their numbers, and cursors.
    """
    found = list[tuple[str, str]]()
    for text in package.declarations:
        cursor = Cursor(text)
        if cursor.take(_PRAGMA, "EXCEPTION_INIT", "("):
            found.append((cursor.name(), text))
        elif cursor.word() in ("TYPE", "SUBTYPE", "CURSOR"):
            cursor.step()
            found.append((cursor.name(), text))
        elif cursor.word(1) == "EXCEPTION":
            found.append((cursor.name(), text))
    return found


def needed(shared: Sequence[tuple[str, str]], text: str) -> list[str]:
    """Return the texts of the shared declarations that a routine uses, directly or indirectly."""
    names = set(used([name for name, _ in shared], text))
    while True:
        texts = [one for name, one in shared if name in names]
        more = set(used([name for name, _ in shared], " ".join(texts))) | names
        if more == names:
            return texts
        names = more


def _constant(cursor: Cursor, name: str, relations: Relations, owner: str) -> Constant:
    typed = read_type(cursor, relations, owner, {}, sized=True)
    if not cursor.take(":="):
        cursor.expect("DEFAULT")
    return Constant(name, typed, RoutineSql(relations, owner).value(cursor.rest(), typed.fact))


def used(names: Iterable[str], text: str) -> list[str]:
    """Return the names that occur in a text."""
    words = {word.upper() for word in re.findall(r"[\w$#]+", text)}
    return [name for name in names if name in words]
