-- Creates the ledger of the applier. The applier runs this script if its role may; otherwise, the owner of
-- the database must run it. You can run it again: it updates an older version of the ledger.

CREATE SCHEMA IF NOT EXISTS olr_pg;

-- The version of these tables: 1 (without this table), 2, 3 (tables of the cut-over), 4, 5 (start_scn),
-- 6 (dbid), 7 (incomplete), 8 (set_aside), 9 (paused), 10 (unlogged, replica identities), 11 (structure),
-- 12 (way_back), 13 (left_scn), 14 (incarnation), 16 (target_oid),
-- 17 (target_oid of a load), 18 (target_file), 19 (empty_at), 20 (held_rows),
-- 21 (action), 22 (listed), 23 (target_parts).
CREATE TABLE IF NOT EXISTS olr_pg.version (version integer NOT NULL);
-- Without a replica identity, PostgreSQL rejects updates and deletes if a publication FOR ALL TABLES exists.
ALTER TABLE olr_pg.version REPLICA IDENTITY FULL;

-- The position of each table. It is updated in the same transaction as the rows of the table.
CREATE TABLE IF NOT EXISTS olr_pg.ledger (
    subscription  text NOT NULL,
    source_table  text NOT NULL,              -- OWNER.NAME
    target_table  text NOT NULL,              -- schema.name
    commit_scn    bigint NOT NULL,            -- of the last applied transaction; 0 = none yet
    xids          text[] NOT NULL DEFAULT '{}', -- transactions applied at this commit SCN; empty = all
    applied_at    timestamptz NOT NULL DEFAULT now(),
    transactions  bigint NOT NULL DEFAULT 0,
    inserted      bigint NOT NULL DEFAULT 0,
    updated       bigint NOT NULL DEFAULT 0,
    deleted       bigint NOT NULL DEFAULT 0,
    conflicts     bigint NOT NULL DEFAULT 0,
    stopped       boolean NOT NULL DEFAULT false, -- true: changes of the table go to olr_pg.held
    PRIMARY KEY (subscription, source_table)
) WITH (fillfactor = 50);

-- For a stopped table: its definition at its first held change, as a dictionary snapshot (JSON).
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS held_source text;
-- The DBID of the source's container, which RESETLOGS, a switchover or renaming do not change.
-- NULL = unknown; the next start sets it.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS dbid bigint;
-- The number of rows of the table in olr_pg.incomplete; if 0, the applier does not read olr_pg.incomplete.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS incomplete bigint NOT NULL DEFAULT 0;
-- true: an operator has paused the table; its changes are held until an operator resumes it.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS paused boolean NOT NULL DEFAULT false;
-- `olr-pg run` has started without this table in its list; the value is complete_scn at that start. Changes of
-- the table after it may be missing. A new load, or `olr-pg errors skip`, sets it to NULL.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS left_scn bigint;
-- The RESETLOGS_ID (V$DATABASE_INCARNATION) of the incarnation of the source that contains all transactions
-- up to commit_scn. After an OPEN RESETLOGS, the same SCNs come again with other transactions. NULL = unknown;
-- the next start sets it.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS resetlogs_id bigint;
-- The OID of the target table; and where it is valid: system identifier of the server, OID of the database, OID of
-- this table. If only the target table or only this table has another OID, they were not restored together.
-- NULL = unknown; the applier records them before the next change.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS target_oid oid;
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS target_place text;
-- The number of the target table's file; of a partitioned table, the sum of its partitions' numbers. If it is another
-- one and the table is empty, somebody has emptied the table. NULL = unknown; each start of the applier records it.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS target_file bigint;
-- The partitions of a partitioned target table: OID -> [number of the file, name]. It is recorded with target_file.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS target_parts jsonb;
UPDATE olr_pg.ledger AS l SET target_parts = (
    WITH RECURSIVE part AS (
        SELECT oid FROM pg_class WHERE oid = l.target_oid AND relkind = 'p'
      UNION ALL
        SELECT i.inhrelid FROM pg_inherits AS i JOIN part ON i.inhparent = part.oid
        WHERE NOT i.inhdetachpending
    )
    SELECT jsonb_object_agg(c.oid::text,
        jsonb_build_array(pg_relation_filenode(c.oid)::int8, c.oid::regclass::text))
    FROM part JOIN pg_class AS c ON c.oid = part.oid AND c.relkind <> 'p')
WHERE target_file IS NOT NULL AND NOT EXISTS (SELECT FROM olr_pg.version WHERE version >= 23);
-- The value of inserted - deleted at which the changes of the source leave no row in the target table. A load sets it,
-- and so does each DDL that removes all rows. NULL = unknown.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS empty_at bigint;
ALTER TABLE olr_pg.ledger ALTER COLUMN empty_at SET DEFAULT 0;
-- The number of rows of the table in olr_pg.held. If olr_pg.held has fewer, somebody has deleted held changes.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS held_rows bigint NOT NULL DEFAULT 0;
-- Version 1 did not hold changes: the stream waited at a stopped table, and now delivers its changes again.
UPDATE olr_pg.ledger SET stopped = false WHERE stopped AND held_source IS NULL AND NOT paused;

-- The tables that have been in the list of a subscription. A table without changes has no row in olr_pg.ledger, until
-- it leaves the list.
CREATE TABLE IF NOT EXISTS olr_pg.listed (
    subscription  text NOT NULL,
    source_table  text NOT NULL,              -- OWNER.NAME
    target_table  text NOT NULL,              -- schema.name, when the table came into the list
    PRIMARY KEY (subscription, source_table)
);

-- Paused subscriptions: the applier receives no changes from the server.
CREATE TABLE IF NOT EXISTS olr_pg.paused (
    subscription  text PRIMARY KEY,
    paused_at     timestamptz NOT NULL DEFAULT now(),
    paused_by     text NOT NULL
);

-- The position of each subscription; `olr_pg.consistent_scn` reads it.
CREATE TABLE IF NOT EXISTS olr_pg.subscription (
    subscription  text PRIMARY KEY,
    complete_scn  bigint NOT NULL,            -- all commits up to this SCN are applied or held
    complete_at   timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- From this SCN on, a server delivers all changes that the tables lack. Replication starts here after the
-- whole database was restored from a backup.
ALTER TABLE olr_pg.subscription ADD COLUMN IF NOT EXISTS start_scn bigint;

-- The incarnation of the source from which each subscription gets its changes. It is recorded before the first
-- change of a new incarnation arrives.
CREATE TABLE IF NOT EXISTS olr_pg.incarnation (
    subscription  text PRIMARY KEY,
    resetlogs_id  bigint NOT NULL,
    resetlogs_scn bigint NOT NULL,            -- where it began: later redo of its parent is orphaned
    followed_at   timestamptz NOT NULL DEFAULT now()
);

-- The held changes of stopped tables, in order; they are applied when the table continues. The changes of a
-- transaction are stored as Data messages of the protocol, one after another, split into pieces.
CREATE TABLE IF NOT EXISTS olr_pg.held (
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    id            bigint GENERATED ALWAYS AS IDENTITY,
    commit_scn    bigint NOT NULL,
    xid           text NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('changes', 'ddl')),
    changes       integer NOT NULL,           -- in the first piece: number of the transaction's changes; else 0
    cut           bigint[] NOT NULL DEFAULT '{}', -- positions of changes whose LOB values were too large
    big_endian    boolean NOT NULL,
    data          bytea NOT NULL,             -- for kind 'ddl': JSON
    held_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (subscription, source_table, id)
);

-- LOB values that the held changes lack, and that were received outside the protocol; JSON.
ALTER TABLE olr_pg.held ADD COLUMN IF NOT EXISTS lost text;

-- Versions before 20 did not count the held changes.
UPDATE olr_pg.ledger AS l SET held_rows = (
    SELECT count(*) FROM olr_pg.held AS h
    WHERE (h.subscription, h.source_table) = (l.subscription, l.source_table))
WHERE stopped AND NOT EXISTS (SELECT FROM olr_pg.version WHERE version >= 20);

-- LOB values that the target lacks because the redo does not contain them completely. In an inserted row, the
-- column is NULL; in an updated row, it has its old value. The entry is inserted in the transaction of the
-- change. If the key of the row changes, the entry is updated. It is deleted in the transaction that writes the
-- value or deletes the row. Before you write to this table, lock the row of the source table in olr_pg.ledger.
CREATE TABLE IF NOT EXISTS olr_pg.incomplete (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    target_table  text NOT NULL,
    key           jsonb,                      -- target column -> value as text; NULL = unknown, or no key
    row_id        text,                       -- Oracle ROWID at the change; NULL = none
    column_name   text NOT NULL,              -- in the source
    target_column text NOT NULL,
    operation     text NOT NULL CHECK (operation IN ('insert', 'update')),
    commit_scn    bigint NOT NULL,
    xid           text NOT NULL,
    reason        integer NOT NULL,           -- of olr_pg's error catalogue: 2120, 2122, 2123
    noted_at      timestamptz NOT NULL DEFAULT now(),
    fetched_at    timestamptz,                -- time of the last attempt to fetch the value from the source
    failure       text                        -- why this attempt failed
);
CREATE INDEX IF NOT EXISTS incomplete_table ON olr_pg.incomplete (subscription, source_table, id);
CREATE INDEX IF NOT EXISTS incomplete_key ON olr_pg.incomplete USING hash (key);

-- Changes that could not be applied: conflicts, and errors that stopped a table. For the operation 'ddl', the
-- message describes the DDL of the source. 'undecoded' is a change whose redo does not identify the row.
-- `olr-pg errors` shows these changes, and resumes stopped tables.
CREATE TABLE IF NOT EXISTS olr_pg.error (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    target_table  text NOT NULL,
    commit_scn    bigint NOT NULL,
    xid           text NOT NULL,
    position      integer NOT NULL,           -- the change's number within (transaction, table), from 0
    scn           bigint NOT NULL,
    row_id        text,                       -- Oracle ROWID of the row
    operation     text NOT NULL,
    code          integer NOT NULL,           -- of olr_pg's error catalogue
    sqlstate      text,
    message       text NOT NULL,
    statement     text,
    before        jsonb,                      -- column -> hex of the bytes in Oracle's form, or null
    after         jsonb,
    resolution    text NOT NULL,              -- stopped, skipped, overwritten; applied: applied later
    first_seen    timestamptz NOT NULL DEFAULT now(),
    last_seen     timestamptz NOT NULL DEFAULT now(),
    attempts      integer NOT NULL DEFAULT 1,
    UNIQUE (subscription, source_table, commit_scn, xid, position)
);

-- What to do; NULL = as the error catalogue says for the code.
ALTER TABLE olr_pg.error ADD COLUMN IF NOT EXISTS action text;
CREATE UNIQUE INDEX IF NOT EXISTS error_id ON olr_pg.error (id);
ALTER TABLE olr_pg.error REPLICA IDENTITY USING INDEX error_id;

ALTER TABLE olr_pg.error DROP CONSTRAINT IF EXISTS error_operation_check;
ALTER TABLE olr_pg.error ADD CONSTRAINT error_operation_check
    CHECK (operation IN ('insert', 'update', 'delete', 'ddl', 'undecoded'));
ALTER TABLE olr_pg.error DROP CONSTRAINT IF EXISTS error_resolution_check;
ALTER TABLE olr_pg.error ADD CONSTRAINT error_resolution_check
    CHECK (resolution IN ('stopped', 'skipped', 'overwritten', 'applied'));

-- Returns the commit SCN up to which every table of the subscription is complete; NULL = unknown. It stays
-- below the first held change of a stopped table. With `apply.consistency` 'transaction', the tables equal the
-- source at this SCN; otherwise, a table may already contain later changes.
CREATE OR REPLACE FUNCTION olr_pg.consistent_scn(subscription text DEFAULT 'olr_pg') RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT least(s.complete_scn, min(first.commit_scn) - 1)
    FROM olr_pg.subscription AS s
        LEFT JOIN olr_pg.ledger AS l ON l.subscription = s.subscription AND l.stopped
        LEFT JOIN LATERAL (
            SELECT h.commit_scn FROM olr_pg.held AS h
            WHERE h.subscription = l.subscription AND h.source_table = l.source_table
            ORDER BY h.id LIMIT 1
        ) AS first ON true
    WHERE s.subscription = consistent_scn.subscription
    GROUP BY s.complete_scn;
END;

-- Initial loads: the SCN at which the rows of a table were read, and the SCN at which `run` must start for it.
CREATE TABLE IF NOT EXISTS olr_pg.load (
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    target_table  text NOT NULL,
    scn           bigint NOT NULL,
    start_scn     bigint NOT NULL,            -- begin of the oldest transaction open at scn; 0 = unknown
    source        text NOT NULL,              -- identity of the table data
    parts         integer NOT NULL,           -- number of partitions
    started_at    timestamptz NOT NULL DEFAULT now(),
    finished_at   timestamptz,                -- since then, olr_pg.ledger contains the table
    rows          bigint,
    bytes         bigint,
    handed_over   boolean NOT NULL DEFAULT false, -- true: replication has passed scn
    PRIMARY KEY (subscription, source_table)
);

-- The incarnation of the source at the start of the load; NULL = unknown.
ALTER TABLE olr_pg.load ADD COLUMN IF NOT EXISTS resetlogs_id bigint;
-- The OID of the target table that contains the loaded partitions; NULL = unknown.
ALTER TABLE olr_pg.load ADD COLUMN IF NOT EXISTS target_oid oid;

-- The loaded partitions; an entry is inserted in the transaction that loads the rows. The part -2 is not a
-- partition: it says that a rename or an exchange has brought rows to this name.
CREATE TABLE IF NOT EXISTS olr_pg.load_part (
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    part          integer NOT NULL,
    rows          bigint NOT NULL DEFAULT 0,
    bytes         bigint NOT NULL DEFAULT 0,
    finished_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (subscription, source_table, part)
);

-- The steps of a cut-over, in the order of started_at.
CREATE TABLE IF NOT EXISTS olr_pg.cutover (
    subscription  text NOT NULL,
    step          text NOT NULL,
    state         text NOT NULL CHECK (state IN ('running', 'done', 'failed', 'skipped')),
    started_at    timestamptz NOT NULL DEFAULT now(),
    finished_at   timestamptz,
    detail        jsonb NOT NULL DEFAULT '{}', -- what the step found
    PRIMARY KEY (subscription, step)
);

-- Triggers, rules and foreign keys that `apply.triggers` "disable" has disabled; the cut-over restores them. An
-- entry is inserted in the transaction that disables the object, and deleted in the one that restores it.
CREATE TABLE IF NOT EXISTS olr_pg.set_aside (
    subscription  text NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('trigger', 'rule', 'foreign key')),
    schema_name   text NOT NULL,              -- schema of its table
    table_name    text NOT NULL,
    name          text NOT NULL,
    definition    text,                       -- of a foreign key, as PostgreSQL prints it
    remark        text,                       -- the comment of a foreign key
    valid         boolean NOT NULL,           -- whether a foreign key was validated
    set_aside_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (subscription, kind, schema_name, table_name, name)
);

-- Pending changes of the target: DDL of the source has created or dropped an index, key, check or virtual
-- column, and the target does not have the change yet. State 'reported': an operator must run the statements,
-- or there are none because of the reason; 'due': the applier runs them. An entry is deleted when the query
-- `present` shows that the change is done.
CREATE TABLE IF NOT EXISTS olr_pg.structure (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    target_table  text NOT NULL,
    commit_scn    bigint NOT NULL,
    xid           text NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('index', 'constraint', 'column')),
    source_name   text NOT NULL,
    target_name   text NOT NULL,
    what          text NOT NULL,              -- the change in the source
    statements    text[] NOT NULL,            -- for the target, in this order
    present       text,                       -- a query that returns one boolean
    reason        text,                       -- why there is no statement, or why it failed
    state         text NOT NULL CHECK (state IN ('reported', 'due')),
    noted_at      timestamptz NOT NULL DEFAULT now()
);

-- Partitions of the source whose rows are in target partitions with other names, because partitions of the
-- source were split, merged, renamed or dropped (`applier.stopped.partition_rows`). Names are those in the
-- target without the table's name. Name '' has the target partitions whose rows belong to unknown partitions.
CREATE TABLE IF NOT EXISTS olr_pg.partition (
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    name          text NOT NULL,
    holds         text[] NOT NULL,            -- '' or {} = also in unknown target partitions
    PRIMARY KEY (subscription, source_table, name)
);

-- Both tables have the same rows. A crash of PostgreSQL empties UNLOGGED tables, so only the first one. If only
-- the first table is empty, a crash has happened; if both are empty, olr_pg has not run yet.
CREATE UNLOGGED TABLE IF NOT EXISTS olr_pg.crash_mark (subscription text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS olr_pg.crash_watch (
    subscription  text PRIMARY KEY,
    looked_at     timestamptz NOT NULL DEFAULT now()
);

-- For replication from Oracle, to recognise transactions that `olr-pg fallback` wrote: the accounts that the last
-- start of `olr-pg run` knew, and each ledger in Oracle (JSON: container, account, SCN of its begin and end).
CREATE TABLE IF NOT EXISTS olr_pg.way_back (
    subscription  text PRIMARY KEY,
    accounts      text[],                     -- OWNER#USER#; NULL = `olr-pg run` has not started yet
    lives         jsonb NOT NULL DEFAULT '[]'
);

-- Replicated tables that are UNLOGGED or have UNLOGGED partitions.
CREATE TABLE IF NOT EXISTS olr_pg.unlogged (
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    noted_at      timestamptz NOT NULL DEFAULT now(),
    lost_at       timestamptz,                -- time of a crash that emptied it; a new load deletes the entry
    PRIMARY KEY (subscription, source_table)
);

COMMENT ON TABLE olr_pg.crash_mark IS 'olr_pg: UNLOGGED, to detect a crash of PostgreSQL';
COMMENT ON TABLE olr_pg.crash_watch IS 'olr_pg: the same rows as crash_mark, which survive a crash';
COMMENT ON TABLE olr_pg.unlogged IS 'olr_pg: replicated tables that a crash empties, or emptied';
COMMENT ON TABLE olr_pg.partition IS 'olr_pg: partitions whose rows are in target partitions with other names';
COMMENT ON TABLE olr_pg.structure IS 'olr_pg: changes of indexes, keys, checks and virtual columns that the target lacks';
COMMENT ON TABLE olr_pg.set_aside IS 'olr_pg: disabled triggers, rules and foreign keys to restore';
COMMENT ON TABLE olr_pg.cutover IS 'olr_pg: the steps of a cut-over';
COMMENT ON TABLE olr_pg.load IS 'olr_pg: initial loads';
COMMENT ON TABLE olr_pg.load_part IS 'olr_pg: loaded partitions of initial loads';
COMMENT ON TABLE olr_pg.ledger IS 'olr_pg: the last applied commit of each subscription and table';
COMMENT ON TABLE olr_pg.error IS 'olr_pg: changes that caused a conflict or an error';
COMMENT ON TABLE olr_pg.held IS 'olr_pg: changes of stopped tables, in order';
COMMENT ON TABLE olr_pg.incomplete IS 'olr_pg: LOB values that the tables lack';
COMMENT ON TABLE olr_pg.subscription IS 'olr_pg: the SCN up to which each subscription is complete';
COMMENT ON TABLE olr_pg.incarnation IS 'olr_pg: the incarnation of the source that each subscription follows';
COMMENT ON TABLE olr_pg.listed IS 'olr_pg: tables that have been in the list of a subscription';
COMMENT ON TABLE olr_pg.paused IS 'olr_pg: subscriptions that are paused';
COMMENT ON TABLE olr_pg.way_back IS 'olr_pg: ledgers of olr-pg fallback in Oracle';
COMMENT ON TABLE olr_pg.version IS 'olr_pg: version of these tables';

-- Until version 18, this was computed. After a TRUNCATE, the number is too low, so it is never reached.
UPDATE olr_pg.ledger AS l SET empty_at = -(
    SELECT coalesce(sum(p.rows), 0) FROM olr_pg.load_part AS p
    WHERE (p.subscription, p.source_table) = (l.subscription, l.source_table))
WHERE (SELECT max(version) FROM olr_pg.version) < 19 AND empty_at IS NULL
    AND NOT EXISTS (SELECT FROM olr_pg.load_part AS p
        WHERE (p.subscription, p.source_table, p.part) = (l.subscription, l.source_table, -2))
    AND NOT EXISTS (SELECT FROM olr_pg.load AS d
        WHERE (d.subscription, d.source_table) = (l.subscription, l.source_table)
        AND d.source = 'copied by another tool');
DELETE FROM olr_pg.version;
INSERT INTO olr_pg.version VALUES (23);
