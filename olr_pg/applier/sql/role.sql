-- The applier's role with the least it needs. Run with psql as a superuser of the target, in this
-- order; the target schema must be there:
--
--   psql -f ledger.sql
--   psql -v role=olr_pg_applier -v target_schema=olr_test -f role.sql
--
-- Then give the role a password (\password). Running it again does no harm: do so for every further
-- target schema, and for tables that others have created since.

SELECT format('CREATE ROLE %I LOGIN', :'role')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'role') \gexec

-- Ordinary triggers and foreign keys must not fire again for changes that Oracle has checked.
-- Where nobody may grant this: leave it out, set `apply.triggers` to "disable", and let the role own the
-- tables (or be a member of the role that does).
GRANT SET ON PARAMETER session_replication_role TO :"role";

GRANT USAGE ON SCHEMA olr_pg TO :"role";
GRANT SELECT ON olr_pg.version TO :"role";
GRANT SELECT, INSERT, UPDATE ON olr_pg.ledger, olr_pg.error, olr_pg.subscription, olr_pg.way_back TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON olr_pg.held, olr_pg.incomplete, olr_pg.load, olr_pg.load_part,
    olr_pg.cutover, olr_pg.set_aside, olr_pg.paused, olr_pg.crash_mark, olr_pg.crash_watch, olr_pg.unlogged,
    olr_pg.structure TO :"role";

GRANT USAGE ON SCHEMA :"target_schema" TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA :"target_schema" TO :"role";

-- `olr-pg cutover` sets the sequences to where the source's are.
GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA :"target_schema" TO :"role";

-- New columns (ALTER TABLE ... ADD in the source) can only be added by the owner of a table, and foreign
-- keys and checks that are NOT VALID only be validated by it (in the cut-over):
-- GRANT owner_of_the_tables TO :"role";

-- Only with `apply.create-tables`:
-- GRANT CREATE ON DATABASE ... TO :"role";
-- GRANT CREATE ON SCHEMA :"target_schema" TO :"role";
