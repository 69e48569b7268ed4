"""Ensures that the replication from Oracle recognises the transactions that the way back writes to
Oracle.

The way back (`olr_pg.fallback`) writes PostgreSQL's changes to Oracle. The replication from Oracle
reads the changes of the way back in the redo, and must not apply them to PostgreSQL again. The
applier recognises the transactions of the way back because they also change the way back's ledger,
a table in Oracle. So the applier's dictionary must contain the account that owns the ledger. A run
that was started before the account was created, or before the configuration had a section
`fallback`, does not know the account.

So the replication from Oracle and the way back both use one row in the target, in
`olr_pg.way_back`:

- Before a run of the replication from Oracle applies anything, it stores the accounts that its
  dictionary contains. The row also contains each *life* of a ledger, which is the time from its
  creation to its removal. The run fails if it would not recognise the transactions of a life
  (`register`).
- Before the way back creates a ledger, it adds a life to the row. The way back fails if the stored
  accounts do not include its own account. In this case, a run that does not know the account may be
  in progress (`begin_life`).

Because both lock the row, the second command sees the values that the first command has stored.
When the way back ends, it stores the SCN of the ledger's last change in the life. When the
replication from Oracle has passed this SCN, or all tables were loaded after it, the replication
deletes the life, so that a new dictionary no longer needs the account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg.types.json import Jsonb

from olr_pg.applier.settings import KnownLedger
from olr_pg.applier.target.catalogue import relation_exists
from olr_pg.dictionary.followed_dictionary import followed_tables
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from psycopg import Connection

    from olr_pg.dictionary.model import Snapshot

_ENSURE: Final = "INSERT INTO olr_pg.way_back (subscription) VALUES (%s) ON CONFLICT DO NOTHING"
_READ: Final = """
SELECT w.accounts, w.lives, coalesce(s.complete_scn, 0), s.subscription IS NOT NULL
FROM olr_pg.way_back AS w LEFT JOIN olr_pg.subscription AS s USING (subscription)
WHERE w.subscription = %s
"""
_APPLIED_TO_ALL: Final = """
SELECT coalesce(min(coalesce(l.commit_scn - (l.xids <> '{}')::int, 0)), 0)
FROM unnest(%s::text[]) AS one (name)
    LEFT JOIN olr_pg.ledger AS l ON l.source_table = one.name AND l.subscription = %s
"""
_STORE: Final = "UPDATE olr_pg.way_back SET accounts = %s, lives = %s WHERE subscription = %s"


class Life(NamedTuple):
    """The time during which a ledger of the way back exists in Oracle.

    Attributes:
        account: the owner of the ledger, as returned by `account_text`.
        begin: an SCN shortly after the ledger was created; None if it may not be created yet.
        end: the SCN of the ledger's last change; None if the ledger still exists.
    """

    container: str
    account: str
    begin: int | None = None
    end: int | None = None

    def is_recognised(self, known: Collection[KnownLedger]) -> bool:
        """Return whether the transactions of this ledger are recognised with one of these
        dictionaries: it contains the ledger's account, and either contains the ledger or is older
        than the ledger.
        """
        return any(
            self.account in one.accounts
            and (self.begin is None or one.scn < self.begin or self._is_in(one))
            for one in known
            if one.container == self.container
        )

    def _is_in(self, dictionary: KnownLedger) -> bool:
        return dictionary.has_ledger and (self.end is None or dictionary.scn <= self.end)


class _Row(NamedTuple):
    """The row of a subscription in `olr_pg.way_back`.

    Attributes:
        accounts: the accounts that `register` has stored; None if it was never called.
        complete_scn: all transactions that commit up to this SCN are applied or held.
        has_run: whether the subscription has been replicated, not only loaded.
    """

    accounts: list[str] | None
    lives: list[Life]
    complete_scn: int
    has_run: bool


def account_text(owner: str, user: int, container: str = "") -> str:
    """Return an account as text, to compare accounts: its PDB, name and USER#."""
    return f"{container}.{owner}#{user}" if container else f"{owner}#{user}"


def known_ledgers(snapshot: Snapshot, ledger: str) -> tuple[KnownLedger, ...]:
    """Return for each container whether the dictionary contains the way back's account and ledger.

    Args:
        ledger: ``OWNER.NAME`` of the way back's ledger; empty if no way back is configured.
    """
    return tuple(
        _known_ledger(one, one.database.con_name or "" if snapshot.members else "", ledger)
        for one in snapshot.containers
    )


def _known_ledger(snapshot: Snapshot, container: str, ledger: str) -> KnownLedger:
    owner = ledger.rpartition(".")[0]
    rows = snapshot.sys_rows
    # Without these tables of the dictionary, a ledger that is created later would not be
    # recognised.
    users = rows.sys_user if rows is not None and owner and followed_tables(snapshot) else ()
    return KnownLedger(
        container,
        frozenset(account_text(owner, one.user, container) for one in users if one.name == owner),
        snapshot.scn,
        any(ledger in table.names for table in snapshot.tables),
    )


def register(
    connection: Connection[Any],
    subscription: str,
    known: Sequence[KnownLedger],
    tables: Collection[str],
) -> None:
    """Store the accounts that the replication from Oracle knows (`connection` in autocommit mode).

    Args:
        tables: ``OWNER.NAME`` of each table that is replicated.

    Raises:
        OlrPgError: 7318, the replication from Oracle would not recognise all transactions of the
            way back.
    """
    accounts = sorted(account for one in known for account in one.accounts)
    row = _read(connection, subscription)
    # Nothing has to be stored, so do not lock the row: the server may be read-only for a while. If
    # the way back adds a life after this check, its account is one of the stored ones.
    ended = row is not None and any(one.end is not None for one in row.lives)
    applied = _applied_to_all(connection, subscription, tables) if ended else 0
    if row is not None and (row.accounts, row.lives) == (accounts, _left(row, applied)):
        _check_recognised(subscription, row.lives, known)
        return
    with connection.transaction():
        row = _locked(connection, subscription)
        _check_recognised(subscription, _left(row, applied), known)
        _store(connection, subscription, accounts, _left(row, applied))


def _applied_to_all(connection: Connection[Any], subscription: str, tables: Collection[str]) -> int:
    """Return an SCN up to which every table has all transactions, by the position of each. After
    a load of all tables, this SCN is higher than `_Row.complete_scn`.
    """
    found = connection.execute(_APPLIED_TO_ALL, (list(tables), subscription)).fetchone()
    assert found is not None
    return int(found[0])


def _left(row: _Row, applied: int) -> list[Life]:
    """Return the lives whose end the replication from Oracle has not passed yet."""
    passed = max(row.complete_scn, applied)
    return [one for one in row.lives if one.end is None or one.end > passed]


def _check_recognised(
    subscription: str, lives: Sequence[Life], known: Sequence[KnownLedger]
) -> None:
    for one in lives:
        if not one.is_recognised(known):
            since = "" if one.begin is None else f", which began at SCN {one.begin}"
            raise OlrPgError(
                Code.WAY_BACK_NOT_RECOGNISED,
                f"the ledger belongs to {one.account}{since}; the dictionary"
                f" {_words(known, one.container)}",
                subscription=subscription,
            )


def begin_life(connection: Connection[Any], subscription: str, life: Life, *, exists: bool) -> None:
    """Add the life of a ledger that is about to be created (`connection` in autocommit mode).

    Args:
        exists: whether the ledger already exists. If the ledger exists, and the account has a life
            that has not ended, no life is added.

    Raises:
        OlrPgError: 7319, the replication from Oracle does not know the account.
    """
    with connection.transaction():
        row = _locked(connection, subscription)
        if life.account not in (row.accounts or ()) and (row.accounts is not None or row.has_run):
            known = ", ".join(row.accounts or ()) or "no account of a way back"
            raise OlrPgError(
                Code.WAY_BACK_ACCOUNT_UNKNOWN,
                f"the last start of `olr-pg run` found {known}, not {life.account}",
                subscription=subscription,
            )
        is_prepared = any(
            one.account == life.account and one.end is None and (exists or one.begin is None)
            for one in row.lives
        )
        if not is_prepared:
            _store(connection, subscription, row.accounts, [*row.lives, life])


def note_begin(connection: Connection[Any], subscription: str, account: str, scn: int) -> None:
    """Store that the ledger of an account was created shortly before `scn`."""

    def begun(one: Life) -> Life:
        return one._replace(begin=scn) if one.account == account and one.begin is None else one

    _change_lives(connection, subscription, begun)


def is_open(connection: Connection[Any], subscription: str, container: str | None = None) -> bool:
    """Return whether a way back has begun and not ended: whether a ledger has a life without an
    end.

    Args:
        container: the container of the ledger; None for any.
    """
    if not relation_exists(connection, "olr_pg.way_back"):
        return False
    row = _read(connection, subscription)
    return row is not None and any(
        container in (None, one.container) and one.end is None for one in row.lives
    )


def end_lives(connection: Connection[Any], subscription: str, container: str, scn: int) -> None:
    """End the lives of the ledgers in a container: they did not change after `scn`."""

    def ended(one: Life) -> Life:
        return one._replace(end=scn) if one.container == container and one.end is None else one

    _change_lives(connection, subscription, ended)


def _change_lives(
    connection: Connection[Any], subscription: str, changed: Callable[[Life], Life]
) -> None:
    with connection.transaction():
        row = _locked(connection, subscription)
        _store(connection, subscription, row.accounts, [changed(one) for one in row.lives])


def _locked(connection: Connection[Any], subscription: str) -> _Row:
    connection.execute(_ENSURE, (subscription,))
    row = _read(connection, subscription, "FOR UPDATE OF w")
    assert row is not None
    return row


def _read(connection: Connection[Any], subscription: str, lock: str = "") -> _Row | None:
    found = connection.execute(f"{_READ} {lock}".encode(), (subscription,)).fetchone()
    if found is None:
        return None
    accounts, lives, complete_scn, has_run = found
    return _Row(accounts, [Life(**one) for one in lives], complete_scn, has_run)


def _store(
    connection: Connection[Any],
    subscription: str,
    accounts: list[str] | None,
    lives: Sequence[Life],
) -> None:
    stored = Jsonb([one._asdict() for one in lives])
    connection.execute(_STORE, (accounts, stored, subscription))


def _words(known: Sequence[KnownLedger], container: str) -> str:
    """Describe which accounts of the way back a container's dictionary contains, for an error."""
    found = [one for one in known if one.container == container]
    accounts = ", ".join(sorted(account for one in found for account in one.accounts))
    if not accounts:
        return "has no account of the way back, or the configuration has no section `fallback`"
    return f"of SCN {found[0].scn} contains {accounts}, but not this ledger"
