"""Ensures that the replication from Oracle recognises what the way back writes to Oracle.

The way back (`olr_pg.fallback`) writes PostgreSQL's changes to Oracle, and the replication from
Oracle reads them in the redo. It must not apply them to PostgreSQL again. It recognises these
transactions by the ledger in Oracle, if its dictionary has the account that owns the ledger. A run
that is older than the account or than the section `fallback` does not have it.

So both record in one row of the target, `olr_pg.way_back`:

- Before a session of the replication from Oracle applies anything, it stores which accounts its
  dictionary has. It fails if it cannot recognise a *life* of a ledger: the time from its creation
  to its removal (`register`).
- Before the way back creates a ledger, it adds a life. It fails if the stored accounts do not
  include its own: then a run may be in progress that does not have it (`begin_life`).

Whichever comes second sees the other, because both lock the row. When the way back ends, the life
gets the SCN of the ledger's last change. The replication from Oracle forgets the life when it has
passed this SCN: a new dictionary no longer needs the account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg.types.json import Jsonb

from olr_pg.applier.settings import KnownLedger
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
_STORE: Final = "UPDATE olr_pg.way_back SET accounts = %s, lives = %s WHERE subscription = %s"


class Life(NamedTuple):
    """The life of a ledger.

    Attributes:
        account: its owner, as `account_text`.
        begin: an SCN shortly after its creation; None if it is not known to be created.
        end: the SCN of its last change; None if it still exists.
    """

    container: str
    account: str
    begin: int | None = None
    end: int | None = None

    def is_recognised(self, known: Collection[KnownLedger]) -> bool:
        """Return whether a dictionary leads to this ledger: it is in the dictionary, or was created
        later by an account in the dictionary.
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
    """The row of a subscription.

    Attributes:
        accounts: None if no session has registered.
        complete_scn: what commits up to it was applied.
        has_run: something was replicated; a load alone writes no row in `olr_pg.subscription`.
    """

    accounts: list[str] | None
    lives: list[Life]
    complete_scn: int
    has_run: bool


def account_text(owner: str, user: int, container: str = "") -> str:
    """Return an account as it is compared: name, USER# and PDB."""
    return f"{container}.{owner}#{user}" if container else f"{owner}#{user}"


def known_ledgers(snapshot: Snapshot, ledger: str) -> tuple[KnownLedger, ...]:
    """Return what a dictionary has of the way back, for each container.

    Args:
        ledger: ``OWNER.NAME`` of the ledger; empty without a way back.
    """
    return tuple(
        _known_ledger(one, one.database.con_name or "" if snapshot.members else "", ledger)
        for one in snapshot.containers
    )


def _known_ledger(snapshot: Snapshot, container: str, ledger: str) -> KnownLedger:
    owner = ledger.rpartition(".")[0]
    rows = snapshot.sys_rows
    # Without these tables nothing is followed that is created later.
    users = rows.sys_user if rows is not None and owner and followed_tables(snapshot) else ()
    return KnownLedger(
        container,
        frozenset(account_text(owner, one.user, container) for one in users if one.name == owner),
        snapshot.scn,
        any(ledger in table.names for table in snapshot.tables),
    )


def register(connection: Connection[Any], subscription: str, known: Sequence[KnownLedger]) -> None:
    """Store which accounts the replication from Oracle knows (`connection` in autocommit mode).

    Raises:
        OlrPgError: 7318, it would not recognise the transactions of the way back.
    """
    accounts = sorted(account for one in known for account in one.accounts)
    row = _read(connection, subscription)
    # A server that is read-only for a while takes no lock. If a ledger is added behind this look,
    # its account is one of those that are stored.
    if row is not None and (row.accounts, row.lives) == (accounts, _left(row)):
        _check_recognised(subscription, row.lives, known)
        return
    with connection.transaction():
        row = _locked(connection, subscription)
        _check_recognised(subscription, _left(row), known)
        _store(connection, subscription, accounts, _left(row))


def _left(row: _Row) -> list[Life]:
    """Return the lives that the replication from Oracle has not passed."""
    return [one for one in row.lives if one.end is None or one.end > row.complete_scn]


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
        exists: the ledger exists already; then only check.

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
    """Store that a ledger was created shortly before an SCN."""

    def begun(one: Life) -> Life:
        return one._replace(begin=scn) if one.account == account and one.begin is None else one

    _change_lives(connection, subscription, begun)


def is_open(connection: Connection[Any], subscription: str, container: str) -> bool:
    """Return whether a ledger's life in this container has not ended."""
    if connection.execute("SELECT to_regclass('olr_pg.way_back')").fetchone() == (None,):
        return False
    row = _read(connection, subscription)
    return row is not None and any(
        one.container == container and one.end is None for one in row.lives
    )


def end_lives(connection: Connection[Any], subscription: str, container: str, scn: int) -> None:
    """Store that a container's ledgers did not change after an SCN."""

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
    """Return what a dictionary has of the way back."""
    found = [one for one in known if one.container == container]
    accounts = ", ".join(sorted(account for one in found for account in one.accounts))
    if not accounts:
        return "has no account of the way back, or there is no section `fallback`"
    return f"of SCN {found[0].scn} has {accounts}, but not this ledger"
