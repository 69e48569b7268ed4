-- Creates the role of the applier with the minimal privileges. Run both scripts with psql as a superuser
-- of the target, in this order. The target schema must exist:
--
--   psql -f ledger.sql
--   psql -v role=olr_pg_applier -v target_schema=olr_test -f role.sql
--
-- Then set a password for the role (\password). Run role.sql again for each further target schema, and
-- after other roles have created tables; this is safe.

SELECT format('CREATE ROLE %I LOGIN', :'role')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'role') \gexec

-- Triggers and foreign keys must not fire for replicated changes, because they already fired in Oracle.
-- If nobody can grant this, omit the grant, set `apply.triggers` to "disable", and make the role the owner
-- of the tables (or a member of the owner).
GRANT SET ON PARAMETER session_replication_role TO :"role";

GRANT USAGE ON SCHEMA olr_pg TO :"role";
GRANT SELECT ON olr_pg.version TO :"role";
GRANT SELECT, INSERT, UPDATE ON olr_pg.error, olr_pg.subscription, olr_pg.incarnation, olr_pg.way_back
    TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON olr_pg.ledger, olr_pg.held, olr_pg.incomplete, olr_pg.load,
    olr_pg.load_part, olr_pg.cutover, olr_pg.set_aside, olr_pg.paused, olr_pg.crash_mark, olr_pg.crash_watch,
    olr_pg.unlogged, olr_pg.structure, olr_pg.partition, olr_pg.listed TO :"role";

GRANT USAGE ON SCHEMA :"target_schema" TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA :"target_schema" TO :"role";

-- `olr-pg cutover` sets the sequences to the values of the source's sequences.
GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA :"target_schema" TO :"role";

-- Only the owner of a table can add columns (for ALTER TABLE ... ADD in the source), and validate foreign
-- keys and checks that are NOT VALID (in the cut-over):
-- GRANT owner_of_the_tables TO :"role";

-- Only with `apply.create-tables`:
-- GRANT CREATE ON DATABASE ... TO :"role";
-- GRANT CREATE ON SCHEMA :"target_schema" TO :"role";
