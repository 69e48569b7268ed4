-- Creates the scratch schema of `olr-pg prove` (Oracle 12.1 to 26ai), with the minimal privileges. Run it as
-- SYS in the container that contains your tables. The last argument is the account of olr_pg (`source.user`):
--
--   sqlplus sys@host:1521/orclpdb1 as sysdba
--   SQL> @prove.sql OLR_PG_PROVE "a password" OLR
--
-- All users of the host can see the arguments of a program, so give the password to SQL*Plus at its prompt.
-- The user may only create objects in its own schema; it cannot read or change objects of other users.
-- `olr-pg prove` drops the objects that it has created. At the end, run DROP USER OLR_PG_PROVE CASCADE.
-- This script has not been run against a real database by the project.

SET VERIFY OFF
SET SERVEROUTPUT ON
DEFINE prove_user = &1
DEFINE prove_password = &2
DEFINE olr_user = &3

CREATE USER &prove_user IDENTIFIED BY "&prove_password";
GRANT CREATE SESSION, CREATE TABLE, CREATE SEQUENCE, CREATE VIEW, CREATE PROCEDURE, CREATE TRIGGER,
  CREATE TYPE, CREATE CLUSTER TO &prove_user;

-- 2 GB in the default tablespace are enough for all scenarios, also for those with 300,000 rows.
DECLARE
  name VARCHAR2(128);
BEGIN
  SELECT default_tablespace INTO name FROM dba_users WHERE username = UPPER('&prove_user');
  EXECUTE IMMEDIATE 'ALTER USER &prove_user QUOTA 2G ON ' || name;
  DBMS_OUTPUT.PUT_LINE('quota of 2 GB on ' || name);
END;
/

-- The following grants are optional. `olr-pg prove` reports the scenarios and checks that it skipped because a
-- grant is missing.

-- For the comparison with LogMiner.
GRANT LOGMINING TO &olr_user;
GRANT EXECUTE ON SYS.DBMS_LOGMNR TO &olr_user;
GRANT SELECT ON SYS.V_$LOGMNR_CONTENTS TO &olr_user;

-- For the scenarios with distributed transactions.
GRANT EXECUTE ON SYS.DBMS_XA TO &prove_user;

-- To switch logs, so that scenarios need not wait until Oracle archives (ARCHIVE_LAG_TARGET). This is a
-- powerful privilege, and logs cannot be switched in a PDB: there, set `source.redo` to "online" instead.
-- GRANT ALTER SYSTEM TO &prove_user;

-- For the scenarios with encryption, a tablespace; the database must have a wallet:
-- CREATE TABLESPACE OLR_PROVE_ENCRYPTED DATAFILE SIZE 100M ENCRYPTION ENCRYPT;
-- ALTER USER &prove_user QUOTA 100M ON OLR_PROVE_ENCRYPTED;
