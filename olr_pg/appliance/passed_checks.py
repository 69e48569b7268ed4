"""Lists the checks of ``olr-pg doctor`` that passed, each with a sentence that says what it
guarantees.

A check that could not run because another one failed is not listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.config.filter import Filter
from olr_pg.config.source_section import OfflineSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.config.model import Config
    from olr_pg.observability.findings import Finding


class Check(NamedTuple):
    """A check of ``olr-pg doctor``.

    Attributes:
        name: the name of the check, as in its findings.
        passed: a sentence that says what the check guarantees if it found no problem.
        needs: names of other checks. If one of these failed, this check does not run, or only in
            part.
        of_tables: whether the check concerns the tables of `apply`.
    """

    name: str
    passed: str
    needs: tuple[str, ...] = ()
    of_tables: bool = False


_DICTIONARY: Final = ("offline.dictionary",)
_ORACLE: Final = ("oracle.connection", "oracle.privileges")
_LIVE_TABLES: Final = (*_ORACLE, "oracle.tables")
_POSTGRES: Final = (
    "postgres.names",
    "postgres.connection",
    "postgres.pooler",
    "postgres.version",
    "postgres.privileges",
)
_TARGET_TABLES: Final = (*_POSTGRES, *_DICTIONARY, *_LIVE_TABLES)

OFFLINE: Final = (
    Check("offline.dictionary", "the dictionary can be read"),
    Check(
        "offline.supplemental",
        "the dictionary tells of no table whose changes lack their key",
        _DICTIONARY,
        of_tables=True,
    ),
    Check(
        "offline.encryption",
        "as the dictionary says, no table is in an encrypted tablespace",
        _DICTIONARY,
        of_tables=True,
    ),
    Check("offline.logs", "the archived logs can be read and have no gap", _DICTIONARY),
)
LIVE: Final = (
    Check("oracle.connection", "Oracle answers"),
    Check("oracle.privileges", "the user may read what it has to", _ORACLE[:1]),
    Check("oracle.release", "the release is one that is known", _ORACLE),
    Check("oracle.archivelog", "the database archives its redo", _ORACLE),
    Check("oracle.force-logging", "all changes leave redo", _ORACLE),
    Check("oracle.destination", "an archive destination is valid", _ORACLE),
    Check("oracle.logs", "the archived logs can be read here", _ORACLE),
    Check("oracle.retention", "the archived logs go back as far as is needed", _ORACLE),
    Check("oracle.charset", "the character sets are known", _ORACLE),
    Check("oracle.timezone", "the time zone is known", _ORACLE),
    Check("oracle.tables", "the tables of `apply.tables` are there", _ORACLE, of_tables=True),
    Check("oracle.encryption", "redo shows what DDL does", _LIVE_TABLES, of_tables=True),
    Check("oracle.compression", "no table is compressed", _LIVE_TABLES, of_tables=True),
    Check("oracle.columns", "every column can be replicated", _LIVE_TABLES, of_tables=True),
    Check(
        "oracle.supplemental", "redo has the key of every changed row", _LIVE_TABLES, of_tables=True
    ),
    Check(
        "oracle.nologging",
        "nothing of the tables is NOLOGGING",
        (*_LIVE_TABLES, "oracle.logging-privileges"),
        of_tables=True,
    ),
)
ONLINE: Final = (Check("oracle.online-logs", "the online logs can be read here", _ORACLE),)
LOAD: Final = (
    Check("oracle.standby", "transactions that are open can be seen", _ORACLE),
    Check("oracle.load-privileges", "a load may look up all it can use", _ORACLE),
)
FILTER: Final = (
    Check("filter", "`filter` fits the tables", _DICTIONARY, of_tables=True),
    Check("filter.rows", "redo tells which rows `filter.rows` wants", _LIVE_TABLES, of_tables=True),
)
TARGET: Final = (
    Check("postgres.names", "each table has a target of its own"),
    Check("postgres.connection", "PostgreSQL answers", _POSTGRES[:1]),
    Check("postgres.pooler", "no pooler shares its sessions", _POSTGRES[:2]),
    Check("postgres.version", "its version is one that is supported", _POSTGRES[:3]),
    Check("postgres.privileges", "the role may do what it has to", _POSTGRES[:4]),
    Check("postgres.database", "the database takes every character, and can be written", _POSTGRES),
    Check("postgres.connections", "it allows the connections that are needed", _POSTGRES),
    Check("postgres.locks", "it has the locks that partitions take", _POSTGRES),
    Check("postgres.prepared-transactions", "no prepared transaction is in the way", _POSTGRES),
    Check("postgres.event-triggers", "no event trigger acts on the appliance's DDL", _POSTGRES),
    Check("postgres.tables", "the target's tables are there, or may be made", _TARGET_TABLES),
    Check("postgres.columns", "they have every column", _TARGET_TABLES),
    Check("postgres.types", "their types hold Oracle's values", _TARGET_TABLES),
    Check("postgres.identity", "no identity column is in the way", _TARGET_TABLES),
    Check("postgres.keys", "they have the keys", _TARGET_TABLES),
    Check("postgres.kind", "they are ordinary tables, or have their partitions", _TARGET_TABLES),
    Check("postgres.storage", "a crash empties none of them", _TARGET_TABLES),
    Check("postgres.row-security", "no policy hides rows", _TARGET_TABLES),
    Check("postgres.firing", "nothing fires on replicated changes", _TARGET_TABLES),
    Check("postgres.publications", "publications let every row be changed", _TARGET_TABLES),
)
WAY_BACK: Final = (
    Check("fallback.wal-level", "PostgreSQL logs what the way back reads", _POSTGRES),
    Check("fallback.slots", "a replication slot and a sender are free", _POSTGRES),
    Check("fallback.role", "the role may publish the tables and read a slot", _TARGET_TABLES),
    Check("fallback.replica-identity", "each table tells which row changes", _TARGET_TABLES),
    Check("fallback.slot", "the slot keeps its log, and not too much of it", _POSTGRES),
    Check("fallback.ledger", "the forward way will know what the way back does", _TARGET_TABLES),
    Check("fallback.account", "Oracle knows the account of the way back", _TARGET_TABLES),
    Check("fallback.privileges", "it may change the tables", (*_TARGET_TABLES, "fallback.account")),
    Check(
        "fallback.triggers",
        "it may disable their triggers, and enable them again",
        (*_TARGET_TABLES, "fallback.account"),
    ),
)
MACHINE: Final = (
    Check("directory", "the directories can be written to"),
    Check("disk", "they have room"),
    Check("encryption", "the key of `context.data` is the one that was used before, if any"),
    Check("spark.java", "Java is one that Spark runs on"),
)


def passed_checks(config: Config, findings: Sequence[Finding], *, for_load: bool) -> list[Check]:
    """Return the checks that ran for this configuration and passed.

    Args:
        for_load: whether the checks for a load also ran.
    """
    failed = {finding.check for finding in findings}
    return [
        one
        for one in _made(config, for_load)
        if failed.isdisjoint((one.name, *one.needs))
        and not (one.of_tables and config.apply is None)
    ]


def _made(config: Config, for_load: bool) -> Iterator[Check]:
    source, apply = config.source, config.apply
    if isinstance(source, OfflineSource):
        yield from OFFLINE
        conditions = FILTER[:1]
    else:
        yield from LIVE
        yield from ONLINE if source.redo == "online" else ()
        yield from LOAD if for_load else ()
        conditions = FILTER[1:]
    yield from conditions if config.filter != Filter() else ()
    yield from TARGET if apply is not None and not apply.embedded else ()
    yield from WAY_BACK if apply is not None and config.fallback is not None else ()
    yield from MACHINE
