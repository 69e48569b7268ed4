-- Creates the account for replication back to Oracle (`fallback.user`; Oracle 12.1 to 26ai), with the minimal
-- privileges. Run it as SYS in the container that contains your tables, after the tables are created. The last
-- argument is the schema of the tables. Run it again for each further schema:
--
--   sqlplus sys@host:1521/orclpdb1 as sysdba
--   SQL> @fallback.sql OLR_PG_FALLBACK "a password" SHOP
--
-- All users of the host can see the arguments of a program, so give the password to SQL*Plus at its prompt.
-- Several PDBs (`source.containers`): create a common user with user_common.sql in the root first, then run this
-- script for it in each PDB.
--
-- The account may read and change the rows of this schema's tables, disable and enable their triggers and foreign
-- keys, and advance their sequences. Its own schema contains one table, OLR_PG_FALLBACK, which records the
-- transactions of PostgreSQL that were applied. Use the account only for `olr-pg fallback`: the replication from
-- Oracle ignores every transaction that changes this table.
-- After `olr-pg fallback end`, run DROP USER OLR_PG_FALLBACK CASCADE. If it is a common user, drop it in the root,
-- after `fallback end` for all PDBs: DROP USER C##... CASCADE CONTAINER = ALL.
-- This script has not been run against a real database by the project.

SET VERIFY OFF
SET SERVEROUTPUT ON
DEFINE fallback_user = &1
DEFINE fallback_password = &2
DEFINE table_owner = &3

DECLARE
  known NUMBER;
  space VARCHAR2(128);
BEGIN
  SELECT COUNT(*) INTO known FROM dba_users WHERE username = UPPER('&fallback_user');
  IF known = 0 AND UPPER('&fallback_user') LIKE 'C##%' THEN
    RAISE_APPLICATION_ERROR(-20001, 'create the common user with user_common.sql in the root first');
  END IF;
  IF known = 0 THEN
    EXECUTE IMMEDIATE 'CREATE USER &fallback_user IDENTIFIED BY "&fallback_password"';
  END IF;
  SELECT default_tablespace INTO space FROM dba_users WHERE username = UPPER('&fallback_user');
  EXECUTE IMMEDIATE 'ALTER USER &fallback_user QUOTA 100M ON ' || space;
END;
/

GRANT CREATE SESSION, CREATE TABLE TO &fallback_user;
-- The triggers and foreign keys of the tables, and whether they are enabled.
GRANT SELECT ON SYS.DBA_TRIGGERS TO &fallback_user;
GRANT SELECT ON SYS.DBA_CONSTRAINTS TO &fallback_user;
-- Identity columns and the current values of their sequences.
BEGIN
  FOR one IN (
    SELECT view_name AS name FROM dba_views WHERE owner = 'SYS'
      AND view_name IN ('DBA_TAB_IDENTITY_COLS', 'DBA_TAB_COLS', 'DBA_SEQUENCES')
  ) LOOP
    EXECUTE IMMEDIATE 'GRANT SELECT ON SYS.' || one.name || ' TO &fallback_user';
  END LOOP;
END;
/

-- ALTER on a table is enough to enable all of its triggers. If only some triggers of a table are enabled, these
-- must be enabled by name, which requires ALTER ANY TRIGGER. If you do not want this grant, remove this block; then
-- the owner of the triggers must enable them after the way back.
DECLARE
  mixed NUMBER;
BEGIN
  SELECT COUNT(*) INTO mixed FROM (
    SELECT table_name FROM dba_triggers
    WHERE table_owner = UPPER('&table_owner') AND base_object_type = 'TABLE'
    GROUP BY table_name HAVING COUNT(DISTINCT status) > 1
  );
  IF mixed > 0 THEN
    DBMS_OUTPUT.PUT_LINE(mixed || ' tables have both enabled and disabled triggers: ALTER ANY TRIGGER is granted');
    EXECUTE IMMEDIATE 'GRANT ALTER ANY TRIGGER TO &fallback_user';
  END IF;
END;
/

BEGIN
  FOR one IN (
    SELECT t.table_name AS name FROM dba_tables t
    WHERE t.owner = UPPER('&table_owner') AND t.nested = 'NO' AND t.secondary = 'N'
      AND NOT REGEXP_LIKE(t.table_name, '^(BIN\$|MLOG\$_|RUPD\$_|SYS_)')
      AND NOT EXISTS (
        SELECT 1 FROM dba_external_tables e WHERE e.owner = t.owner AND e.table_name = t.table_name
      )
  ) LOOP
    EXECUTE IMMEDIATE 'GRANT SELECT, INSERT, UPDATE, DELETE, ALTER ON "' || UPPER('&table_owner') || '"."'
      || one.name || '" TO &fallback_user';
  END LOOP;
  FOR one IN (
    SELECT sequence_name AS name FROM dba_sequences
    WHERE sequence_owner = UPPER('&table_owner') AND sequence_name NOT LIKE 'ISEQ$$%'
  ) LOOP
    EXECUTE IMMEDIATE 'GRANT SELECT, ALTER ON "' || UPPER('&table_owner') || '"."'
      || one.name || '" TO &fallback_user';
  END LOOP;
END;
/
