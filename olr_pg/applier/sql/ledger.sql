-- The applier's bookkeeping. Run by the applier itself where its role may, else by the owner of
-- the database; running it again changes nothing.

CREATE SCHEMA IF NOT EXISTS olr_pg;

-- How far each table is. A row changes in the same transaction as the table's rows.
CREATE TABLE IF NOT EXISTS olr_pg.ledger (
    subscription  text NOT NULL,
    source_table  text NOT NULL,              -- OWNER.NAME
    target_table  text NOT NULL,              -- schema.name, quoted where needed
    commit_scn    bigint NOT NULL,            -- of the last transaction applied; 0 = none yet
    xids          text[] NOT NULL DEFAULT '{}', -- applied at that commit SCN; empty = all
    applied_at    timestamptz NOT NULL DEFAULT now(),
    transactions  bigint NOT NULL DEFAULT 0,
    inserted      bigint NOT NULL DEFAULT 0,
    updated       bigint NOT NULL DEFAULT 0,
    deleted       bigint NOT NULL DEFAULT 0,
    conflicts     bigint NOT NULL DEFAULT 0,
    stopped       boolean NOT NULL DEFAULT false,
    PRIMARY KEY (subscription, source_table)
) WITH (fillfactor = 50);

-- Changes that could not be applied as they are: conflicts, and errors that stopped a table. Of an
-- operation 'ddl' the message says what was done to the source's table; where its resolution is set to
-- 'skipped', the table goes on behind it at the next start.
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
    operation     text NOT NULL CHECK (operation IN ('insert', 'update', 'delete', 'ddl')),
    code          integer NOT NULL,           -- of olr_pg's error catalogue
    sqlstate      text,
    message       text NOT NULL,
    statement     text,
    before        jsonb,                      -- column → hex of the bytes in Oracle's form, or null
    after         jsonb,
    resolution    text NOT NULL CHECK (resolution IN ('stopped', 'skipped', 'overwritten')),
    first_seen    timestamptz NOT NULL DEFAULT now(),
    last_seen     timestamptz NOT NULL DEFAULT now(),
    attempts      integer NOT NULL DEFAULT 1,
    UNIQUE (subscription, source_table, commit_scn, xid, position)
);

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

COMMENT ON TABLE olr_pg.load IS 'olr_pg: initial loads';
COMMENT ON TABLE olr_pg.load_part IS 'olr_pg: partitions of initial loads that are in';
COMMENT ON TABLE olr_pg.ledger IS 'olr_pg: the last applied commit of each subscription and table';
COMMENT ON TABLE olr_pg.error IS 'olr_pg: changes that met a conflict or an error';
