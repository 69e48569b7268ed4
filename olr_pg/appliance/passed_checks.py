"""Lists the checks of ``olr-pg doctor`` that passed, each with a sentence that says what it
guarantees.

A check that could not run because another check failed is not listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.config.source_section import OfflineSource
from olr_pg.config.table_sections import Filter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.config.model import Config
    from olr_pg.observability.findings import Finding


class Check(NamedTuple):
    """A check of ``olr-pg doctor``.

    Attributes:
        name: the name of the check, as in its findings.
        passed: a sentence that says what the check guarantees if it found no problem.
        needs: names of other checks. If one of the named checks failed, this check does not run, or
            only in part.
        of_tables: whether the check concerns the tables of `apply`.
    """

    name: str
    passed: str
    needs: tuple[str, ...] = ()
    of_tables: bool = False


_DICTIONARY: Final = ("offline.dictionary",)
_ORACLE: Final = ("oracle.connection", "oracle.privileges")
_REDO: Final = (*_ORACLE, "oracle.standby-redo")
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
        "according to the dictionary, the changes of all tables contain their key",
        _DICTIONARY,
        of_tables=True,
    ),
    Check(
        "offline.encryption",
        "according to the dictionary, no table is in an encrypted tablespace",
        _DICTIONARY,
        of_tables=True,
    ),
    Check("offline.logs", "the archived logs can be read and have no gap", _DICTIONARY),
)
LIVE: Final = (
    Check("oracle.connection", "Oracle answers"),
    Check("oracle.privileges", "the user has the required privileges", _ORACLE[:1]),
    Check("oracle.tls", "the connection is encrypted and verified, or local"),
    Check("oracle.release", "the release is supported", _ORACLE),
    Check("oracle.archivelog", "the database archives its redo", _ORACLE),
    Check("oracle.force-logging", "NOLOGGING operations are disabled for the database", _ORACLE),
    Check("oracle.destination", "an archive destination is valid", _ORACLE),
    Check("oracle.logs", "the archived logs can be read here", _REDO),
    Check("oracle.retention", "the archived logs go back far enough", _REDO),
    Check("oracle.charset", "the character sets are known", _ORACLE),
    Check("oracle.timezone", "the time zone is known", _ORACLE),
    Check("oracle.tables", "the tables of `apply.tables` exist", _ORACLE, of_tables=True),
    Check("oracle.encryption", "the redo shows the effect of DDL", _LIVE_TABLES, of_tables=True),
    Check("oracle.compression", "no table is compressed", _LIVE_TABLES, of_tables=True),
    Check("oracle.columns", "every column can be replicated", _LIVE_TABLES, of_tables=True),
    Check(
        "oracle.object-tables",
        "no object table is left out because patterns do not match it",
        _LIVE_TABLES,
        of_tables=True,
    ),
    Check(
        "oracle.supplemental",
        "the redo contains the key of every changed row",
        _LIVE_TABLES,
        of_tables=True,
    ),
    Check(
        "oracle.nologging",
        "no table, partition or LOB is NOLOGGING",
        (*_LIVE_TABLES, "oracle.logging-privileges"),
        of_tables=True,
    ),
)
ONLINE: Final = (Check("oracle.online-logs", "the online logs can be read here", _REDO),)
STANDBY: Final = (
    Check(
        "oracle.standby-redo",
        "the standby belongs to the source and has received its redo",
        _ORACLE,
    ),
)
LOAD: Final = (
    Check("oracle.standby", "open transactions can be seen", _ORACLE),
    Check("oracle.in-doubt", "no distributed transaction is in doubt", _ORACLE),
    Check("oracle.policies", "no security policy hides rows or values from a load", _ORACLE),
    Check("oracle.load-privileges", "the user has the optional privileges for a load", _ORACLE),
    Check(
        "oracle.text-bytes",
        "the text has the declared or configured character set",
        _LIVE_TABLES,
        of_tables=True,
    ),
)
MAPPING: Final = (
    Check(
        "mapping",
        "each name and pattern of the mappings matches a table or column",
        (*_DICTIONARY, *_LIVE_TABLES),
        of_tables=True,
    ),
)
FILTER: Final = (
    Check(
        "filter",
        "`filter` matches the tables, and each of its patterns a table or column",
        (*_DICTIONARY, *_LIVE_TABLES),
        of_tables=True,
    ),
)
LIVE_FILTER: Final = (
    Check(
        "filter.rows",
        "the redo contains the columns of `filter.rows`",
        _LIVE_TABLES,
        of_tables=True,
    ),
)
PLANNED_TARGET: Final = (
    Check("postgres.names", "each table has a target of its own"),
    Check(
        "postgres.limits",
        "each row, key and number of columns is within PostgreSQL's fixed limits",
        _TARGET_TABLES,
    ),
)
TARGET: Final = (
    Check("postgres.connection", "PostgreSQL answers", _POSTGRES[:1]),
    Check("postgres.pooler", "no connection pooler shares sessions", _POSTGRES[:2]),
    Check("postgres.version", "the version of PostgreSQL is supported", _POSTGRES[:3]),
    Check("postgres.privileges", "the role has the required privileges", _POSTGRES[:4]),
    Check("postgres.tls", "the connection is encrypted and verified, or local", _POSTGRES),
    Check(
        "postgres.search-path",
        "only certain roles can create functions in the schemas of the search path",
        _POSTGRES,
    ),
    Check("postgres.ledger", "no table of the schema olr_pg is missing", _POSTGRES),
    Check("postgres.database", "the database stores all characters and is writable", _POSTGRES),
    Check("postgres.connections", "PostgreSQL allows enough connections", _POSTGRES),
    Check("postgres.locks", "PostgreSQL has enough locks for the partitions", _POSTGRES),
    Check(
        "postgres.prepared-transactions", "no prepared transaction locks a target table", _POSTGRES
    ),
    Check("postgres.event-triggers", "no event trigger fires on DDL of the appliance", _POSTGRES),
    Check("postgres.tables", "the target tables exist or can be created", _TARGET_TABLES),
    Check("postgres.columns", "the target tables have all columns", _TARGET_TABLES),
    Check(
        "postgres.types",
        "the types of the target columns can store Oracle's values",
        _TARGET_TABLES,
    ),
    Check("postgres.identity", "no identity column rejects Oracle's values", _TARGET_TABLES),
    Check("postgres.keys", "the target tables have the keys of the source tables", _TARGET_TABLES),
    Check(
        "postgres.kind",
        "the target tables are ordinary tables, or have all partitions",
        _TARGET_TABLES,
    ),
    Check("postgres.storage", "no target table is UNLOGGED", _TARGET_TABLES),
    Check("postgres.row-security", "no row level security policy hides rows", _TARGET_TABLES),
    Check("postgres.firing", "no trigger or rule fires on replicated changes", _TARGET_TABLES),
    Check(
        "postgres.publications", "publications do not prevent updates and deletes", _TARGET_TABLES
    ),
)
WAY_BACK: Final = (
    Check("fallback.wal-level", "wal_level is logical, as the way back requires", _POSTGRES),
    Check("fallback.slots", "a replication slot and a WAL sender are available", _POSTGRES),
    Check("fallback.role", "the role may publish the tables and use a slot", _TARGET_TABLES),
    Check("fallback.replica-identity", "each table has a replica identity", _TARGET_TABLES),
    Check(
        "fallback.slot",
        "the slot has its WAL, and keeps no more than `fallback.max-wal-mb`",
        _POSTGRES,
    ),
    Check(
        "fallback.ledger",
        "the replication from Oracle can recognise the changes of the way back",
        _TARGET_TABLES,
    ),
    Check("fallback.account", "the account of the way back exists in Oracle", _TARGET_TABLES),
    Check(
        "fallback.privileges",
        "the account may change the tables",
        (*_TARGET_TABLES, "fallback.account"),
    ),
    Check(
        "fallback.policies",
        "no security policy hides rows from the account",
        (*_TARGET_TABLES, "fallback.account"),
    ),
    Check(
        "fallback.triggers",
        "the account may disable and enable the triggers of the tables",
        (*_TARGET_TABLES, "fallback.account"),
    ),
)
MACHINE: Final = (
    Check("files", "other users can neither change the configuration nor read its secrets"),
    Check("directory", "the directories are writable"),
    Check("disk", "the directories have enough free space"),
    Check(
        "encryption",
        "the encryption key is the one that `context.data` was encrypted with, if it is encrypted",
    ),
    Check("spark.java", "Spark supports this Java"),
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
    else:
        yield from LIVE
        yield from STANDBY if source.standby is not None else ()
        yield from ONLINE if source.redo == "online" else ()
        yield from LOAD if for_load else ()
    if config.filter != Filter():
        yield from FILTER
        yield from LIVE_FILTER if not isinstance(source, OfflineSource) else ()
    yield from MAPPING
    if apply is not None:
        yield from PLANNED_TARGET
        yield from TARGET if not apply.embedded else ()
        yield from WAY_BACK if config.fallback is not None else ()
    yield from MACHINE
