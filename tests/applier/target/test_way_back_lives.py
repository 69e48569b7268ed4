"""In every order of the commands of both ways, nothing of the way back comes round in silence."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest

from olr_pg.applier.settings import KnownLedger
from olr_pg.applier.target.ledger import ensure_ledger, note_complete
from olr_pg.applier.target.way_back_lives import (
    Life,
    account_text,
    begin_life,
    end_lives,
    is_open,
    note_begin,
    register,
)
from olr_pg.errors import Code, OlrPgError
from tests.advice import followed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ORDERS = {
    "the account was there": "account section run begin write read",
    "a run is older than the account": "section run account begin! restart begin write read",
    "a run is older than the section": "account run section begin! restart begin write read",
    "a stopped run is older": "run stop account section begin! run begin write read",
    "a run goes on without the section": "account section run begin write -section restart!",
    "until it has it": "account section run stop begin write -section run! section run read",
    "end and begin again": "account section run begin write end begin write end read begin",
    "the account is made anew": "account section run begin write end -account account begin!"
    " restart begin write read",
    "both accounts at once": "account section run begin write stop end -account account run"
    " begin write read",
    "the ledger was dropped": "account section run begin write drop end begin write read",
    "the account was dropped": "account section run begin write -account account end restart"
    " begin write read",
    "the dictionary is read anew as of the start": "account section run begin write stop anew run"
    " write read",
    "after the ledger was dropped": "account section run begin write stop end anew run read",
    "the account, too": "account section run begin write stop end -account anew run read",
    "of now, with the ledger": "account section run begin write stop now run write read",
    "of now, after the ledger": "account section run begin write stop end now run!",
    "behind its end": "account section run begin write end read stop now run write",
    "nothing is left of it": "account section run begin write end read stop -account -section lost"
    " run",
    "the data is lost": "account section run begin write stop lost run read",
    "after the end": "account section run begin write stop end lost run read",
    "after the account": "account section run begin write stop end -account lost run!",
}
"""By what happens: actions of `World`, those with ``!`` are refused."""

ACTIONS = (
    *("account", "-account", "section", "-section", "run", "stop", "restart", "read", "begin"),
    *("end", "drop", "write", "write", "anew", "now", "lost", "load"),
)


_TABLE = "A.B"


class Span(NamedTuple):
    """Of something that was created and dropped."""

    number: int
    since: int
    until: int | None = None

    def is_there(self, scn: int) -> bool:
        return self.since <= scn and (self.until is None or scn < self.until)


class Ledger(NamedTuple):
    account: int
    since: int
    until: int | None = None


class Dictionary(NamedTuple):
    """Stored by a run: as of an SCN, with these accounts."""

    scn: int
    accounts: frozenset[int]


@dataclass
class World:
    """Oracle, and the replication from it; the target is real.

    Attributes:
        written: SCN and ledger of each transaction of the way back.
        running: the dictionary of the run in progress, if it has the section.
        unsure_until: the ledger was dropped by hand before; nobody knows when.
    """

    target: psycopg.Connection[Any]
    name: str
    scn: int = 10
    accounts: list[Span] = field(default_factory=list)
    ledgers: list[Ledger] = field(default_factory=list)
    written: list[tuple[int, Ledger]] = field(default_factory=list)
    has_section: bool = False
    has_begun: bool = False
    position: int = 1
    stored: Dictionary | None = None
    reads_now: bool = False
    running: Dictionary | None = None
    is_running: bool = False
    unsure_until: int = 0

    def act(self, action: str) -> None:
        """Do what a name of `ACTIONS` says, if it can be done now."""
        self.scn += 10
        if action.endswith("section"):
            self.has_section = action == "section"
        elif action == "account" and self._account() is None:
            self.accounts.append(Span(100 + len(self.accounts), self.scn))
        elif action == "-account" and self._account() is not None:
            self.accounts[-1] = self.accounts[-1]._replace(until=self.scn)
            self._drop()
        elif action == "drop":
            self._drop()
        elif action == "write" and self._ledger() is not None and self.has_begun:
            self.written.append((self.scn, self.ledgers[-1]))
        elif action == "stop":
            self.is_running = False
        elif action in ("anew", "now", "lost") and not self.is_running:
            # Tables were added that the stored dictionary lacks; `now`: undo does not reach back.
            self.reads_now = action == "now"
            self.stored = None if action == "lost" else self.stored
            self.stored = self.stored and self.stored._replace(scn=-1)
        elif action in ("run", "restart"):
            self._start()
        elif action in ("read", "begin", "end", "load"):
            getattr(self, f"_{action}")()

    def _account(self) -> Span | None:
        last = self.accounts[-1] if self.accounts else None
        return last if last is not None and last.until is None else None

    def _ledger(self) -> Ledger | None:
        last = self.ledgers[-1] if self.ledgers else None
        return last if last is not None and last.until is None else None

    def _drop(self) -> None:
        if self._ledger() is not None:
            old = self.ledgers[-1]
            self.ledgers[-1] = old._replace(until=self.scn)
            self.written = [
                (scn, self.ledgers[-1] if one == old else one) for scn, one in self.written
            ]

    def _start(self) -> None:
        """Start the replication, as `LiveDatabase` reads and keeps its dictionary."""
        self.is_running = False
        now = self._account()
        more = {now.number} if now is not None and self.has_section else set[int]()
        before = self.stored
        if before is None or before.scn < 0:
            kept = before.accounts if before is not None and self.has_section else frozenset()
            scn = self.scn if self.reads_now else self.position
            there = {one.number for one in self.accounts if one.is_there(scn)}
            self.stored = Dictionary(scn, frozenset(there | kept | more))
        else:
            self.stored = before._replace(accounts=before.accounts | more)
        dictionary = self.stored
        self.reads_now = False
        texts = frozenset(map(self._text, dictionary.accounts)) if self.has_section else frozenset()
        has_ledger = self.has_section and any(self._is_in(one, dictionary) for one in self.ledgers)
        known = KnownLedger("", texts, dictionary.scn, has_ledger)
        try:
            register(self.target, self.name, [known], [_TABLE])
        except OlrPgError:
            # Not in vain: there is a way back, or something of it is still to be read.
            self.running = dictionary if self.has_section else None
            begun = any(one.since >= self.position for one in self.ledgers)
            assert self.has_begun or begun or self._missed() or self.unsure_until > self.position
            raise
        self.running = dictionary if self.has_section else None
        self.is_running = True

    @staticmethod
    def _text(number: int) -> str:
        return account_text("WAY_BACK", number)

    @staticmethod
    def _is_in(ledger: Ledger, dictionary: Dictionary) -> bool:
        return (
            ledger.account in dictionary.accounts
            and ledger.since <= dictionary.scn
            and (ledger.until is None or dictionary.scn < ledger.until)
        )

    def _missed(self) -> list[int]:
        """What is still to be read and would not be recognised."""
        one = self.running
        return [
            scn
            for scn, ledger in self.written
            if scn > self.position
            and not (
                one is not None
                and (
                    self._is_in(ledger, one)
                    or (ledger.account in one.accounts and one.scn < ledger.since)
                )
            )
        ]

    def _read(self) -> None:
        if self.is_running:
            assert not self._missed()
            self.position = self.scn
            note_complete(self.target, self.name, self.position)

    def _load(self) -> None:
        """Load all tables again, which is refused while there is a way back."""
        if self.is_running or is_open(self.target, self.name):
            return
        self.position = self.scn
        self.target.execute(
            "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
            " VALUES (%s, %s, 'a.b', %s) ON CONFLICT (subscription, source_table)"
            " DO UPDATE SET commit_scn = excluded.commit_scn",
            (self.name, _TABLE, self.position),
        )

    def _begin(self) -> None:
        account, ledger = self._account(), self._ledger()
        if account is None or not self.has_section or (self.has_begun and ledger is None):
            return
        text = self._text(account.number)
        life = Life("", text)
        begin_life(self.target, self.name, life, exists=self.has_begun)
        if not self.has_begun:
            self.ledgers.append(Ledger(account.number, self.scn))
        self.has_begun = True
        note_begin(self.target, self.name, text, self.scn + 1)

    def _end(self) -> None:
        if self._account() is None or not self.has_section:
            return
        if is_open(self.target, self.name, ""):
            here = [scn for scn, ledger in self.written if ledger == self._ledger()]
            ledger = self._ledger()
            if ledger is None:
                self.unsure_until = self.scn
            last = self.scn if ledger is None else max([ledger.since + 1, *here])
            end_lives(self.target, self.name, "", last)
        self._drop()
        self.has_begun = False


_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def target(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE lives")
        with psycopg.connect(postgres, dbname="lives", autocommit=True) as own:
            ensure_ledger(own)
            own.execute("SET synchronous_commit = off")
            yield own
        connection.execute("DROP DATABASE lives WITH (FORCE)")


def world(target: psycopg.Connection[Any]) -> World:
    return World(target, f"world {next(_numbers)}")


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_each_order_is_right_or_refused(target: psycopg.Connection[Any], order: str) -> None:
    found = world(target)
    for action in order.split():
        if action.endswith("!"):
            with pytest.raises(OlrPgError):
                found.act(action[:-1])
        else:
            found.act(action)


def go_through(found: World, actions: Sequence[str]) -> None:
    for action in actions:
        with suppress(OlrPgError):
            found.act(action)


@pytest.mark.parametrize("seed", range(25))
def test_no_order_brings_anything_round(target: psycopg.Connection[Any], seed: int) -> None:
    """More of them: ``-k no_order`` with another range."""
    rng, found = Random(seed), world(target)
    start = ["account", "section", "run"] if rng.random() < 0.7 else []
    go_through(found, [*start, *rng.choices(ACTIONS, k=40)])


def test_a_run_of_an_older_release_has_registered_nothing(
    target: psycopg.Connection[Any],
) -> None:
    name = f"world {next(_numbers)}"
    target.execute(
        "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
        " VALUES (%s, %s, 'a.b', 7)",
        (name, _TABLE),
    )
    life = Life("", account_text("WAY_BACK", 7))
    begin_life(target, name, life, exists=False)  # after a load there is no run that is older
    note_complete(target, name, 9)
    with pytest.raises(OlrPgError) as unknown:
        begin_life(target, name, life, exists=False)
    followed(unknown.value, Code.WAY_BACK_ACCOUNT_UNKNOWN, "run `olr-pg run --once`")
    known = KnownLedger("", frozenset({life.account}), 5, has_ledger=False)
    register(target, name, [known], [_TABLE])
    begin_life(target, name, life, exists=False)


def test_a_ledger_has_one_life_until_it_is_created_again(target: psycopg.Connection[Any]) -> None:
    name = f"world {next(_numbers)}"
    mine, other = account_text("WAY_BACK", 7), account_text("WAY_BACK", 8)
    register(
        target, name, [KnownLedger("", frozenset({mine, other}), 5, has_ledger=False)], [_TABLE]
    )

    def begins(account: str) -> list[tuple[str, int | None]]:
        row = target.execute("SELECT lives FROM olr_pg.way_back WHERE subscription = %s", [name])
        ((lives,),) = row.fetchall()
        return [(one["account"], one["begin"]) for one in lives if one["account"] == account]

    begin_life(target, name, Life("", mine), exists=False)
    begin_life(target, name, Life("", other), exists=True)
    begin_life(target, name, Life("", mine), exists=False)  # it was killed before the CREATE
    assert (begins(mine), begins(other)) == ([(mine, None)], [(other, None)])
    note_begin(target, name, mine, 20)
    note_begin(target, name, mine, 30)
    begin_life(target, name, Life("", mine), exists=True)
    assert (begins(mine), begins(other)) == ([(mine, 20)], [(other, None)])
    begin_life(target, name, Life("", mine), exists=False)  # somebody has dropped it
    assert begins(mine) == [(mine, 20), (mine, None)]
    end_lives(target, name, "", 40)
    begin_life(target, name, Life("", mine), exists=True)
    assert begins(mine)[2:] == [(mine, None)]


def test_each_container_has_an_account_of_its_own(target: psycopg.Connection[Any]) -> None:
    name = f"world {next(_numbers)}"
    one, two = (account_text("C##BACK", 7, pdb) for pdb in ("PDB1", "PDB2"))
    register(target, name, [KnownLedger("PDB1", frozenset({one}), 5, has_ledger=False)], [_TABLE])
    begin_life(target, name, Life("PDB1", one), exists=False)
    with pytest.raises(OlrPgError):
        begin_life(target, name, Life("PDB2", two), exists=False)
    with pytest.raises(OlrPgError) as lacking:
        register(
            target, name, [KnownLedger("PDB2", frozenset({two}), 5, has_ledger=False)], [_TABLE]
        )
    assert "PDB1.C##BACK#7" in lacking.value.detail
