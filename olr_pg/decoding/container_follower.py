"""Follows the dictionary changes of the tables in one container; see
`decoding.dictionary_follower`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.decoding.new_tables import (
    NUMBERS,
    NewTables,
    Take,
    Wanted,
    any_wants,
    is_made_without_rows,
    number_of_name,
    with_number,
)
from olr_pg.dictionary.beside_columns import NOTHING
from olr_pg.dictionary.containers import ContainerNames
from olr_pg.dictionary.evolution import (
    ROW_COMMANDS,
    TRUNCATE_TABLE,
    Evolution,
    changes_files,
    exchanged,
    find_exchanges,
    flashed_back,
    is_dropped,
    judge,
    judge_again,
    refused_now,
    renamed,
    swapped,
    unknown_ddl,
    unknown_half,
)
from olr_pg.dictionary.followed_dictionary import FollowedDictionary, followed_tables
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.dictionary.partition_groups import Part, added_partitions, moves_values, regroup
from olr_pg.dictionary.sys_tables import carry_over
from olr_pg.dictionary.true_charsets import (
    refused_for_charset,
    sets_of_columns,
    with_database_charsets,
)
from olr_pg.transactions.schema_event import SchemaEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

    from olr_pg.decoding.filters import Filters
    from olr_pg.dictionary.beside_columns import BesideColumns
    from olr_pg.dictionary.committed_changes import DictionaryTransaction, Statement
    from olr_pg.dictionary.model import Snapshot, Table


class Version(NamedTuple):
    """The definition of a table from an SCN on. `table` is None if the table no longer exists.

    Attributes:
        root: the number of the table's name, if an earlier table had this name or the table was
            renamed; otherwise None. `ContainerFollower` describes these numbers.
    """

    since: int
    table: Table | None
    root: int | None = None


class _Places(NamedTuple):
    """Finds tables by what DDL statements contain: the OBJ# of a table or partition, or owner and
    name.
    """

    by_number: dict[int, int]
    by_name: dict[tuple[str, str], int]

    @classmethod
    def of(cls, tables: Mapping[int, Table | None]) -> _Places:
        """Return the indexes for tables that are given by OBJ#. None stands for a table that no
        longer exists.
        """
        alive = [(obj, table) for obj, table in tables.items() if table is not None]
        numbers = {part: obj for obj, table in alive for part in table.partitions}
        numbers.update((obj, obj) for obj, _ in alive)
        return cls(numbers, {(t.source_owner, t.name): obj for obj, t in alive})


class _Swap(NamedTuple):
    """The new name of a table that exchanges its name with another table.

    Attributes:
        root: the number of the table's new name.
        is_first: whether the event of this table comes before the event of the other table.
        has_known_rows: whether the table's rows are replicated under its former name.
    """

    root: int
    is_first: bool
    has_known_rows: bool


class ContainerFollower:
    """Keeps the versions of the tables in one container, by OBJ#.

    Clients and targets know tables by name. A name has a number here: the OBJ# of the first table
    that had the name (`_roots` contains the number for each later table). If a table got the name
    by a rename, and no table had the name before, the name gets a number of its own
    (`new_tables.number_of_name`).

    If new tables are followed (`take` is not None), two more rules apply. A table that is created
    under the name of a dropped or renamed table replaces this table. A table that is renamed ends
    the history of its old name and continues the history of its new name.

    Args:
        snapshot: the initial dictionary of the container.
        record: called with every transaction that changes a table or creates a user, to store it
            durably before the change takes effect; or None.
        filters: the filters for columns and operations.
        tell: called with a table and the event for its change.
        take: see `decoding.new_tables.Take`.

    Attributes:
        snapshot_scn: SCN of the initial dictionary.
        followed: the SYS tables whose row changes the follower needs.
        versions: the versions of changed tables, by OBJ#.
        done: the commit position of the last processed transaction.
        late: transactions with DDL of a table that committed before `done` but were not processed.
            Such late transactions are recorded, but have no effect yet: the next follower begins
            with all recorded transactions, and processes them in commit order.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        record: Callable[[DictionaryTransaction], None] | None,
        filters: Filters,
        tell: Callable[[Table, SchemaEvent], None],
        take: Take | None = None,
    ) -> None:
        self._filters = filters
        self._record = record
        self._tell_all = tell
        self.con_id = snapshot.database.con_id
        self.snapshot_scn = snapshot.scn
        self.followed = followed_tables(snapshot)
        rows = snapshot.sys_rows if self.followed else None
        self._dictionary = (
            None if rows is None else FollowedDictionary(rows, snapshot.database.charset)
        )
        self._database = snapshot.database
        self._first = {table.obj: table for table in snapshot.tables}
        self._names = ContainerNames.of(snapshot)
        self._charsets = {} if rows is None else sets_of_columns(snapshot)
        self._current: dict[int, Table | None] = {
            obj: table for obj, table in self._first.items() if obj < NUMBERS
        }
        self._joined: dict[int, Table | None] = {}
        self._beside: dict[int, BesideColumns] = {}
        self._gone: dict[str, tuple[int, Table | None, BesideColumns]] = {}
        self._roots: dict[int, int] = {}
        self._named = {table.full_name: obj for obj, table in self._first.items()}
        self._by_name: dict[int, Table] = {}
        self._replaces = take is not None
        self._swapped: dict[int, _Swap] = {}
        self._places: _Places | None = None
        self._used: set[Statement] = set()
        self.versions: dict[int, list[Version]] = {}
        self.done = (snapshot.scn, (1 << 16, 0, 0, 0))
        self._taken = set[tuple[int, tuple[int, int, int, int]]]()
        self.late: list[DictionaryTransaction] = []
        self._new_tables = NewTables(take)

    @property
    def taken(self) -> Set[str]:
        """The names of the new tables that `take` accepted."""
        return self._new_tables.taken

    def watch_for(self, wanted: Wanted | None) -> None:
        """Report new tables from now on; see `decoding.new_tables.NewTables.watch_for`."""
        names = self._names

        def is_wanted(owner: str, name: str) -> bool | None:
            assert wanted is not None
            own = owner.removeprefix(f"{names.container}.") if names.con_id else owner
            if not self._filters.wants_named((f"{owner}.{name}", f"{own}.{name}")):
                return False
            spellings = (own,) if is_oracle_schema(own) else names.spellings(own)
            return any_wants(wanted(one, name) for one in spellings)

        self._new_tables.watch_for(None if wanted is None else is_wanted)

    def take(
        self, transaction: DictionaryTransaction, rest: Sequence[DictionaryTransaction]
    ) -> dict[int, Version]:
        """Process a committed transaction of this container. A transaction that was processed
        before is ignored.

        Args:
            rest: the known transactions that committed later.

        Returns:
            The new versions, by OBJ#.

        Raises:
            OlrPgError: 3070 or 3005 if rows of SYS tables are invalid.
        """
        if transaction.order in self._taken:
            return {}
        self._taken.add(transaction.order)
        if transaction.order <= self.done:
            self._note_late(transaction)
            return {}
        versions = dict(self._evolve(transaction, rest))
        self.done = transaction.order
        return versions

    def _note_late(self, transaction: DictionaryTransaction) -> None:
        """Record a transaction that committed before `done`, if it should have been processed.

        This happens if an earlier run recorded DDL of one redo thread before it had read the logs
        of another thread, or if its dictionary lacked a table or a user that was added since. DDL
        that is read in time is always recorded if it concerns a known table, or creates a table or
        a user. An interval partition that an insert creates has no statement.
        """
        scn = transaction.commit_scn
        if self._record is None or scn <= self.snapshot_scn:
            return
        found = {obj for statement in transaction.statements for obj in self._objects_of(statement)}
        is_new = False
        if self._dictionary is not None:
            found |= self._dictionary.with_new_partitions(transaction)
            is_new = self._dictionary.creates_owner(transaction) or self._dictionary.creates_table(
                transaction
            )
        if is_new or any(self._existed(obj, scn) for obj in found):
            self._record(transaction)
            self.late.append(transaction)

    def _existed(self, obj: int, scn: int) -> bool:
        """Return whether a followed table existed at an SCN. Otherwise a statement at that SCN
        named an earlier table of the same name.
        """
        versions = self.versions.get(obj)
        return obj in self._first or (versions is not None and versions[0].since < scn)

    # --- one transaction ---

    def _evolve(
        self, transaction: DictionaryTransaction, rest: Sequence[DictionaryTransaction]
    ) -> Iterator[tuple[int, Version]]:
        touched = set[int]()
        parts = dict[int, Part]()
        has_new_owner = False
        if self._dictionary is not None:
            for obj in self._dictionary.concerned(transaction):
                if obj not in self._joined:
                    self._joined[obj] = self._join(obj)
                table = self._joined[obj]
                if obj not in self._beside:
                    self._beside[obj] = self._look_beside(table)
                parts |= {} if table is None else self._dictionary.parts(table)
            has_new_owner = self._dictionary.creates_owner(transaction)
            touched = self._dictionary.apply(transaction)
        else:
            for statement in transaction.statements:
                owner = self._names.owner(statement.owner)
                self._new_tables.see_statement(
                    statement._replace(owner=owner), transaction.commit_scn
                )
        named = {obj for statement in transaction.statements for obj in self._objects_of(statement)}
        objects = sorted(touched | named)
        if (objects or has_new_owner) and self._record is not None:
            self._record(transaction)
        both = self._before_and_after(objects)
        halves = self._exchanged(both, parts)
        self._swapped = self._find_swapped(both)
        for obj in objects:
            version = self._evolve_table(obj, transaction, rest, parts, halves.get(obj))
            if version is not None:
                version = version._replace(root=self._roots.get(obj))
                self.versions.setdefault(obj, []).append(version)
                self._current[obj] = version.table
                self._places = None
                yield obj, version

    def _evolve_table(
        self,
        obj: int,
        transaction: DictionaryTransaction,
        rest: Sequence[DictionaryTransaction],
        parts: Mapping[int, Part],
        halves: Evolution | None,
    ) -> Version | None:
        old = self._current.get(obj)
        statements = self._statements(obj, transaction)
        if self._dictionary is None:
            return None if old is None else self._end(old, transaction, statements)
        before, after = self._joined.get(obj) or old, self._join(obj)
        self._joined[obj] = after
        now_beside = self._look_beside(after)
        # If no row of a SYS table changed for this table, nothing beside its columns has changed.
        beside = self._beside.get(obj, now_beside), now_beside
        self._beside[obj] = now_beside
        said: tuple[Statement, ...] = ()
        if after is not None and before is None:
            said = tuple(self._of_new_table(transaction, rest))
            if self._replaces and after.full_name in self._gone:
                return self._replace(after, transaction, said)
            said = () if self._is_name_known(after) else said
            if after.obstacle is None and is_made_without_rows(after, said):
                self._named.setdefault(after.full_name, obj)
        elif after is not None and before is not None:
            named = self._get_name(before, after, transaction, statements)
            if named is not None:
                return named
        self._new_tables.see(obj, before, after, transaction.commit_scn, said)
        if old is None or before is None:
            alive = after is not None and not is_dropped(after) and after.refusal is None
            return Version(transaction.commit_scn, after) if alive else None
        truncates = any(statement.command == TRUNCATE_TABLE for statement in statements)
        was = {part: parts[part] for part in before.partitions if part in parts}
        now = {} if after is None else self._dictionary.parts(after)
        is_same = after == before and beside[0] == beside[1] and was == now
        moves = moves_values(statements) or changes_files(statements)
        if is_same and not truncates and not moves:
            return None
        if after is not None and not statements:
            statements = self._later_statements(obj, transaction, rest)
        evolution = halves
        if evolution is None:
            with_default = self._dictionary.with_default(obj)
            names = {part: one.name for part, one in was.items()}
            gone = set(before.partitions) - set(() if after is None else after.partitions)
            told = statements or self._statements_of_parent(before, after, transaction)
            moved = regroup(was, now, gone - was.keys(), told)
            if len(now) > len(was) and not moved:
                known = [names.get(part, "") for part in before.partitions]
                moved = added_partitions(told, tuple(known))
            evolution = judge(before, after, told, with_default, names, beside).then(moved)
        self._used.update(statements)
        if after == before and not truncates and evolution == Evolution():
            return None
        new = after and (old if after == before else carry_over(old, before, after))
        if is_dropped(after):
            return self._drop(old, transaction, evolution, beside[0])
        self._tell(obj, transaction, evolution, new)
        if after == before:
            return None
        alive = new is not None and new.refusal is None
        return Version(transaction.commit_scn, new if alive else None)

    def _before_and_after(self, objects: Sequence[int]) -> dict[int, tuple[Table, Table]]:
        """Return the tables that exist before and after a transaction with more than one table,
        which can exchange partitions or names.
        """
        if self._dictionary is None or len(objects) < 2:
            return {}
        pairs = ((obj, self._joined.get(obj), self._join(obj)) for obj in objects)
        return {obj: (was, now) for obj, was, now in pairs if was is not None and now is not None}

    def _exchanged(
        self, both: Mapping[int, tuple[Table, Table]], parts: Mapping[int, Part]
    ) -> dict[int, Evolution]:
        """Return the evolution of each of the two tables if a partition was exchanged with a table.
        Return an empty dictionary if there was no exchange.
        """
        before = {obj: was for obj, (was, _) in both.items()}
        verdicts = dict[int, Evolution]()
        for found in find_exchanges(before, {obj: now for obj, (_, now) in both.items()}):
            parted = before[found.parted]
            names = {obj: parts[obj].name if obj in parts else "" for obj in parted.partitions}
            name = names.pop(found.part, "")
            halves = exchanged(parted, name, before[found.other], tuple(names.values()))
            verdicts |= zip((found.parted, found.other), halves, strict=True)
        return verdicts

    def _find_swapped(self, both: Mapping[int, tuple[Table, Table]]) -> dict[int, _Swap]:
        """Find the tables that exchange their names in this transaction, as at the end of
        DBMS_REDEFINITION, if at least one of the two names has a history.
        """
        if not self._replaces:
            return {}
        names = {
            was.full_name: (obj, now.full_name)
            for obj, (was, now) in both.items()
            if was.full_name != now.full_name
        }
        found = dict[int, _Swap]()
        for name, (obj, new) in names.items():
            other, back = names.get(new, (obj, ""))
            roots = self._roots.get(obj, obj), self._roots.get(other, other)
            is_known = self._named.get(name) == roots[0]
            gets_known = self._named.get(new) == roots[1]
            if back == name and (is_known or gets_known):
                root = roots[1] if gets_known else number_of_name(new)
                found[obj] = _Swap(root, is_first=obj < other, has_known_rows=is_known)
        return found

    def _replace(
        self, table: Table, transaction: DictionaryTransaction, said: Sequence[Statement]
    ) -> Version:
        """Process a new table that replaces an earlier table of the same name."""
        root, old, before = self._gone.pop(table.full_name)
        self._roots[table.obj] = root
        is_empty = is_made_without_rows(table, said)
        if root not in self._first:
            self._new_tables.see_again(table, transaction.commit_scn, is_empty=is_empty)
        beside = before, self._beside.get(table.obj, NOTHING)
        evolution = judge_again(old, table, said, empty=is_empty, beside=beside)
        self._tell(table.obj, transaction, evolution, table)
        alive = table.obstacle is None
        return Version(transaction.commit_scn, table if alive else None)

    def _drop(
        self,
        table: Table,
        transaction: DictionaryTransaction,
        evolution: Evolution,
        beside: BesideColumns,
    ) -> Version:
        """Process a table that was dropped, also into the recycle bin."""
        root = self._roots.get(table.obj, table.obj)
        if self._named.get(table.full_name) == root:
            self._gone[table.full_name] = root, table, beside
        # Redo of the dropped table can still follow. It is decoded with the last definition.
        self._tell(table.obj, transaction, evolution, table)
        return Version(transaction.commit_scn, None)

    def _get_name(
        self,
        before: Table,
        after: Table,
        transaction: DictionaryTransaction,
        statements: Sequence[Statement],
    ) -> Version | None:
        """Process a table that gets another name: it was renamed, and olr_pg follows renames; or it
        was restored from the recycle bin, and its name was free. Return None for every other
        change.
        """
        if self._replaces and not is_dropped(before) and not is_dropped(after):
            if before.full_name != after.full_name:
                return self._rename(before, after, transaction, statements)
        elif is_dropped(before) and not is_dropped(after) and after.full_name in self._gone:
            return self._come_back(after, transaction, statements)
        return None

    def _rename(
        self,
        before: Table,
        after: Table,
        transaction: DictionaryTransaction,
        statements: Sequence[Statement],
    ) -> Version:
        """Process a rename: the history of the old name ends, and the table continues the history
        of the new name.
        """
        obj, scn = after.obj, transaction.commit_scn
        self._used.update(statements)
        old = self._current.get(obj)
        table = after if old is None else carry_over(old, before, after)
        leaving, coming = renamed(before, after)
        if table.refusal is not None:
            coming = refused_now(table, statements)
        version = Version(scn, None if table.refusal is not None else table)
        if obj in self._swapped:
            self._new_tables.see_leaving(obj)
            swap = self._swapped[obj]
            self._roots[obj] = swap.root
            evolution = swapped(before, is_first=swap.is_first and swap.has_known_rows)
            if not swap.has_known_rows:
                words = "; ".join(one.text for one in statements if one.text)
                error = unknown_half(evolution.steps[0], after.full_name, words)
                evolution = Evolution((), error)
            self._tell(obj, transaction, evolution, table)
            return version
        root = self._roots.get(obj, obj)
        is_known = self._named.get(before.full_name) == root
        if is_known:
            self._new_tables.see_leaving(obj)
            self._tell(obj, transaction, leaving, table)
            self._gone[before.full_name] = root, None, NOTHING
        number = self._named.get(after.full_name)
        if number is None and is_known:
            number = number_of_name(after.full_name)
            self._named[after.full_name] = number
            self._by_name[number] = with_number(table, number)
        if number is None:
            self._new_tables.see(obj, before, after, scn)
            return version
        self._roots[obj] = number
        self._gone.pop(after.full_name, None)
        named = None if number in self._first else self._first_of(number)
        if named is not None:
            self._new_tables.see_renamed(before, named, scn)
        self._tell(obj, transaction, coming, table)
        return version

    def _come_back(
        self, table: Table, transaction: DictionaryTransaction, statements: Sequence[Statement]
    ) -> Version:
        """Process a table that was restored from the recycle bin."""
        root, *_ = self._gone.pop(table.full_name)
        if root not in self._first and table.full_name not in self.taken:
            self._new_tables.see_again(table, transaction.commit_scn, is_empty=False)
        self._tell(table.obj, transaction, flashed_back(table, statements), table)
        return Version(transaction.commit_scn, table)

    def _is_name_known(self, table: Table) -> bool:
        """Return whether another table of the snapshot has the name of this table. The target table
        and the ledger then belong to the other table.
        """
        return any(
            other.obj != table.obj and other.full_name == table.full_name
            for other in self._first.values()
        )

    def _of_new_table(
        self, transaction: DictionaryTransaction, rest: Sequence[DictionaryTransaction]
    ) -> Iterator[Statement]:
        """Yield the statements that may have created a new table. Such a statement contains the
        table's name, not its number.

        The rows of SYS tables can be inserted by a recursive transaction, which commits before the
        transaction with the statement.
        """
        yield from transaction.statements
        for later in rest:
            if later.con_id == self.con_id and later.begin_scn <= transaction.commit_scn:
                yield from later.statements

    def created(self) -> Iterator[Table]:
        """Yield the tables that got their name after the snapshot, with their first definition.

        A table that was renamed has the number of its new name.
        """
        for number in self._named.values():
            made = None if number in self._first else self._first_of(number)
            if made is not None:
                yield made

    def as_of(self, number: int, scn: int) -> Table | None:
        """Return the definition, at an SCN after the snapshot, of the table that then had a name.
        None if no table had the name, or if the table could not be replicated.

        Args:
            number: the number of the name.
        """
        found = [
            version
            for obj, versions in self.versions.items()
            for version in versions
            if version.since <= scn and number == (version.root or obj)
        ]
        return max(found, key=lambda version: version.since).table if found else None

    def _first_of(self, number: int) -> Table | None:
        """Return the first table that got a name after the snapshot, by the number of the name;
        None if it could not be replicated.
        """
        if number in self._by_name:
            return self._by_name[number]
        return self.versions[number][0].table if number in self.versions else None

    def _end(
        self, table: Table, transaction: DictionaryTransaction, statements: Sequence[Statement]
    ) -> Version | None:
        """End replication of the table if one of the statements is a DDL whose effect is
        unknown.
        """
        ending = [statement for statement in statements if statement.command in ROW_COMMANDS]
        if not ending:
            return None
        self._tell(table.obj, transaction, unknown_ddl(table, ending[0]), None)
        return Version(transaction.commit_scn, None)

    def _tell(
        self,
        obj: int,
        transaction: DictionaryTransaction,
        evolution: Evolution,
        definition: Table | None,
    ) -> None:
        root = self._roots.get(obj, obj)
        if root not in self._first:
            return
        # Clients and the target use the name under which they subscribed to the table.
        first = self._first[root]
        evolution, definition = self._filters.shape_evolution(evolution, definition)
        event = SchemaEvent(
            first.full_name,
            transaction.commit_scn,
            transaction.xid,
            transaction.begin_scn,
            evolution,
            definition,
            statement="; ".join(s.text for s in transaction.statements if s.text),
        )
        self._tell_all(first, event)

    def _join(self, obj: int) -> Table | None:
        """Return the current definition of a table, with the true character sets of its columns. If
        the character set of the database was changed, the definition has a refusal. If several
        containers are read, the table's owner is changed so that its name is unique among them.
        """
        assert self._dictionary is not None
        table = self._dictionary.table(obj)
        if table is None:
            return None
        named = with_database_charsets(self._names.qualify(table), self._database)
        return refused_for_charset(named, self._charsets)

    def _look_beside(self, table: Table | None) -> BesideColumns:
        """Return the current state of what a table has beside its columns (`BesideColumns`)."""
        if table is None or self._dictionary is None:
            return NOTHING
        return self._dictionary.beside(table)

    # --- statements ---

    def _statements(self, obj: int, transaction: DictionaryTransaction) -> list[Statement]:
        return [
            statement
            for statement in transaction.statements
            if statement not in self._used and obj in self._objects_of(statement)
        ]

    def _later_statements(
        self, obj: int, transaction: DictionaryTransaction, rest: Sequence[DictionaryTransaction]
    ) -> list[Statement]:
        """Return the statements for a table from a transaction that commits later. `transaction`
        can be a recursive transaction of the transaction that commits later.
        """
        for later in rest:
            if later.con_id == self.con_id and later.begin_scn <= transaction.commit_scn:
                found = self._statements(obj, later)
                if found:
                    return found
        return []

    @staticmethod
    def _statements_of_parent(
        before: Table, after: Table | None, transaction: DictionaryTransaction
    ) -> Sequence[Statement]:
        """Return the statements that have changed the partitions of a table and name another table.

        If a table is partitioned by reference, DDL on partitions of its parent changes its own
        partitions, which have the same names.
        """
        if after is None or not before.partitions:
            return ()
        is_changed = (before.partitions, before.segments) != (after.partitions, after.segments)
        return transaction.statements if is_changed else ()

    def _objects_of(self, statement: Statement) -> Iterator[int]:
        """Yield the table that a statement identifies, by number or by name."""
        if self._places is None:
            self._places = _Places.of(self._current)
        if statement.obj:
            found = self._places.by_number.get(statement.obj)
        else:
            found = self._places.by_name.get((statement.owner, statement.name))
        if found is not None:
            yield found
