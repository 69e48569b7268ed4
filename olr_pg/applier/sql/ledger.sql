-- The applier's bookkeeping. Run by the applier itself where its role may, else by the owner of
-- the database; running it again changes nothing, and brings an older version up to date.

CREATE SCHEMA IF NOT EXISTS olr_pg;

-- Version of these tables: 1 (before there was this table), 2, 3 (with those of the cut-over), 4, 5 (start_scn),
-- 6 (dbid), 7 (incomplete), 8 (set_aside), 9 (paused), 10 (unlogged, replica identities),
-- 11 (structure), 12 (way_back).
CREATE TABLE IF NOT EXISTS olr_pg.version (version integer NOT NULL);
-- Under a publication FOR ALL TABLES, PostgreSQL refuses updates and deletes without one.
ALTER TABLE olr_pg.version REPLICA IDENTITY FULL;

-- How far each table is. A row changes in the same transaction as the table's rows.
CREATE TABLE IF NOT EXISTS olr_pg.ledger (
    subscription  text NOT NULL,
    source_table  text NOT NULL,              -- OWNER.NAME
    target_table  text NOT NULL,              -- schema.name
    commit_scn    bigint NOT NULL,            -- of the last transaction applied; 0 = none yet
    xids          text[] NOT NULL DEFAULT '{}', -- applied at that commit SCN; empty = all
    applied_at    timestamptz NOT NULL DEFAULT now(),
    transactions  bigint NOT NULL DEFAULT 0,
    inserted      bigint NOT NULL DEFAULT 0,
    updated       bigint NOT NULL DEFAULT 0,
    deleted       bigint NOT NULL DEFAULT 0,
    conflicts     bigint NOT NULL DEFAULT 0,
    stopped       boolean NOT NULL DEFAULT false, -- its changes go to olr_pg.held
    PRIMARY KEY (subscription, source_table)
) WITH (fillfactor = 50);

-- Of a stopped table: its definition as of its first held change, as a dictionary snapshot (JSON).
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS held_source text;
-- DBID of the source's container, which RESETLOGS, a switchover and another name leave as it is;
-- NULL = not known yet: the next start fills it in.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS dbid bigint;
-- How many lines olr_pg.incomplete has of the table: without any, nobody looks there.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS incomplete bigint NOT NULL DEFAULT 0;
-- Somebody has paused the table: it is held as a stopped one is, until somebody resumes it.
ALTER TABLE olr_pg.ledger ADD COLUMN IF NOT EXISTS paused boolean NOT NULL DEFAULT false;
-- Version 1 held nothing: the stream stood still at a stopped table, and delivers it again.
UPDATE olr_pg.ledger SET stopped = false WHERE stopped AND held_source IS NULL AND NOT paused;

-- Subscriptions that somebody has paused as a whole: nothing is taken from the server.
CREATE TABLE IF NOT EXISTS olr_pg.paused (
    subscription  text PRIMARY KEY,
    paused_at     timestamptz NOT NULL DEFAULT now(),
    paused_by     text NOT NULL
);

-- How far each subscription is: `olr_pg.consistent_scn` reads it.
CREATE TABLE IF NOT EXISTS olr_pg.subscription (
    subscription  text PRIMARY KEY,
    complete_scn  bigint NOT NULL,            -- what commits up to it is in the tables, or held
    complete_at   timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- From here a server delivers everything that is not in the tables: where to start again after they
-- and this were put back, as one.
ALTER TABLE olr_pg.subscription ADD COLUMN IF NOT EXISTS start_scn bigint;

-- The changes of stopped tables, in order: they are applied when the table goes on. Those of one
-- transaction are framed Data messages of the protocol, one behind the other, cut into pieces.
CREATE TABLE IF NOT EXISTS olr_pg.held (
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    id            bigint GENERATED ALWAYS AS IDENTITY,
    commit_scn    bigint NOT NULL,
    xid           text NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('changes', 'ddl')),
    changes       integer NOT NULL,           -- of the whole transaction in its first piece, else 0
    cut           bigint[] NOT NULL DEFAULT '{}', -- where changes begin whose LOB values were too large
    big_endian    boolean NOT NULL,
    data          bytea NOT NULL,             -- of 'ddl': JSON
    held_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (subscription, source_table, id)
);

-- LOB values that are left out of the held changes, which came beside the protocol; JSON.
ALTER TABLE olr_pg.held ADD COLUMN IF NOT EXISTS lost text;

-- LOB values that the target lacks, because redo does not hold them whole: the column of an inserted row
-- is NULL, that of an updated one has its old value. A line is written in the transaction of its
-- change, follows the row to another key, and goes in the transaction in which the value comes, or the
-- row goes. Whoever writes here holds the lock of the table's row in olr_pg.ledger.
CREATE TABLE IF NOT EXISTS olr_pg.incomplete (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    target_table  text NOT NULL,
    key           jsonb,                      -- target column -> value as text; NULL = not known, or no key
    row_id        text,                       -- Oracle ROWID as of the change; NULL = it has none
    column_name   text NOT NULL,              -- in the source
    target_column text NOT NULL,
    operation     text NOT NULL CHECK (operation IN ('insert', 'update')),
    commit_scn    bigint NOT NULL,
    xid           text NOT NULL,
    reason        integer NOT NULL,           -- of olr_pg's error catalogue: 2120, 2122, 2123
    noted_at      timestamptz NOT NULL DEFAULT now(),
    fetched_at    timestamptz,                -- when the value was last looked for in the source
    failure       text                        -- why it was not had then
);
CREATE INDEX IF NOT EXISTS incomplete_table ON olr_pg.incomplete (subscription, source_table, id);
CREATE INDEX IF NOT EXISTS incomplete_key ON olr_pg.incomplete USING hash (key);

-- Changes that could not be applied as they are: conflicts, and errors that stopped a table. Of an
-- operation 'ddl' the message says what was done to the source's table; 'undecoded' is a change whose
-- redo does not tell the row. `olr-pg errors` shows them, and lets stopped tables go on.
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
    resolution    text NOT NULL,              -- stopped, skipped, overwritten; applied: it went in later
    first_seen    timestamptz NOT NULL DEFAULT now(),
    last_seen     timestamptz NOT NULL DEFAULT now(),
    attempts      integer NOT NULL DEFAULT 1,
    UNIQUE (subscription, source_table, commit_scn, xid, position)
);

CREATE UNIQUE INDEX IF NOT EXISTS error_id ON olr_pg.error (id);
ALTER TABLE olr_pg.error REPLICA IDENTITY USING INDEX error_id;

ALTER TABLE olr_pg.error DROP CONSTRAINT IF EXISTS error_operation_check;
ALTER TABLE olr_pg.error ADD CONSTRAINT error_operation_check
    CHECK (operation IN ('insert', 'update', 'delete', 'ddl', 'undecoded'));
ALTER TABLE olr_pg.error DROP CONSTRAINT IF EXISTS error_resolution_check;
ALTER TABLE olr_pg.error ADD CONSTRAINT error_resolution_check
    CHECK (resolution IN ('stopped', 'skipped', 'overwritten', 'applied'));

-- Up to this commit SCN every table of the subscription is complete; NULL = nothing is known yet.
-- A stopped table holds it below its first held change. With `apply.consistency` 'transaction' the
-- tables are as the source was at this SCN; else a table may be ahead of it.
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

-- Initial loads: as of which SCN a table's rows were taken, and where `run` starts for its sake.
CREATE TABLE IF NOT EXISTS olr_pg.load (
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    target_table  text NOT NULL,
    scn           bigint NOT NULL,
    start_scn     bigint NOT NULL,            -- begin of the oldest transaction open at scn; 0 = not known
    source        text NOT NULL,              -- identity of the table data
    parts         integer NOT NULL,           -- partitions in all
    started_at    timestamptz NOT NULL DEFAULT now(),
    finished_at   timestamptz,                -- since then the ledger has the table
    rows          bigint,
    bytes         bigint,
    handed_over   boolean NOT NULL DEFAULT false, -- replication is past scn
    PRIMARY KEY (subscription, source_table)
);

-- The partitions that are in; a line is written in the transaction of its rows.
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

-- Triggers, rules and foreign keys that are set aside (`apply.triggers` "disable"), to be put back by the
-- cut-over. A line is written, and goes, in the transaction that switches the thing off, and on.
CREATE TABLE IF NOT EXISTS olr_pg.set_aside (
    subscription  text NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('trigger', 'rule', 'foreign key')),
    schema_name   text NOT NULL,              -- of the table that has it
    table_name    text NOT NULL,
    name          text NOT NULL,
    definition    text,                       -- of a foreign key, as PostgreSQL writes it
    remark        text,                       -- the comment of a foreign key
    valid         boolean NOT NULL,           -- whether a foreign key was validated
    set_aside_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (subscription, kind, schema_name, table_name, name)
);

-- Indexes, keys, checks and virtual columns that DDL of the source has made or dropped, and that the target
-- has otherwise still. 'reported': somebody is to run the statements, or cannot, for the reason; 'due': the
-- applier is at it. A line goes once `present` tells that it is done.
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
    what          text NOT NULL,              -- was done in the source
    statements    text[] NOT NULL,            -- for the target, in their order
    present       text,                       -- a query: one boolean
    reason        text,                       -- why there is no statement, or why one failed
    state         text NOT NULL CHECK (state IN ('reported', 'due')),
    noted_at      timestamptz NOT NULL DEFAULT now()
);

-- A crash of PostgreSQL empties its UNLOGGED tables. So it empties the first of these two, and the second,
-- which has the same lines, tells it from a first start.
CREATE UNLOGGED TABLE IF NOT EXISTS olr_pg.crash_mark (subscription text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS olr_pg.crash_watch (
    subscription  text PRIMARY KEY,
    looked_at     timestamptz NOT NULL DEFAULT now()
);

-- Whether the replication from Oracle recognises what the way back writes to Oracle: the accounts that the last
-- start of `olr-pg run` knew, and each ledger in Oracle (JSON: container, account, SCN of its begin and end).
CREATE TABLE IF NOT EXISTS olr_pg.way_back (
    subscription  text PRIMARY KEY,
    accounts      text[],                     -- OWNER#USER#; NULL = nothing has started yet
    lives         jsonb NOT NULL DEFAULT '[]'
);

-- Replicated tables that are UNLOGGED, or have such partitions.
CREATE TABLE IF NOT EXISTS olr_pg.unlogged (
    subscription  text NOT NULL,
    source_table  text NOT NULL,
    noted_at      timestamptz NOT NULL DEFAULT now(),
    lost_at       timestamptz,                -- a crash took its rows; a load anew removes the line
    PRIMARY KEY (subscription, source_table)
);

COMMENT ON TABLE olr_pg.crash_mark IS 'olr_pg: what a crash empties';
COMMENT ON TABLE olr_pg.crash_watch IS 'olr_pg: what a crash does not empty';
COMMENT ON TABLE olr_pg.unlogged IS 'olr_pg: replicated tables that a crash empties, or emptied';
COMMENT ON TABLE olr_pg.structure IS 'olr_pg: indexes, keys and checks that the source has otherwise';
COMMENT ON TABLE olr_pg.set_aside IS 'olr_pg: triggers, rules and foreign keys to put back';
COMMENT ON TABLE olr_pg.cutover IS 'olr_pg: the steps of a cut-over';
COMMENT ON TABLE olr_pg.load IS 'olr_pg: initial loads';
COMMENT ON TABLE olr_pg.load_part IS 'olr_pg: partitions of initial loads that are in';
COMMENT ON TABLE olr_pg.ledger IS 'olr_pg: the last applied commit of each subscription and table';
COMMENT ON TABLE olr_pg.error IS 'olr_pg: changes that met a conflict or an error';
COMMENT ON TABLE olr_pg.held IS 'olr_pg: changes of stopped tables, in order';
COMMENT ON TABLE olr_pg.incomplete IS 'olr_pg: LOB values that the tables lack';
COMMENT ON TABLE olr_pg.subscription IS 'olr_pg: how far each subscription is complete';
COMMENT ON TABLE olr_pg.paused IS 'olr_pg: subscriptions that are paused';
COMMENT ON TABLE olr_pg.way_back IS 'olr_pg: ledgers of the way back that the redo shows';
COMMENT ON TABLE olr_pg.version IS 'olr_pg: version of these tables';

DELETE FROM olr_pg.version;
INSERT INTO olr_pg.version VALUES (12);
