-- The scratch schema of `olr-pg prove` (12.1 to 26ai), with the least rights that it needs. Run as SYS in
-- the container that holds your tables; the last argument is the account of olr_pg (`source.user`):
--
--   sqlplus sys@host:1521/orclpdb1 as sysdba @prove.sql OLR_PG_PROVE "a password" OLR
--
-- The user may make objects in its own schema, and nothing else: it may not read or change any object of
-- another user. `prove` removes what it made; when you are done, DROP USER OLR_PG_PROVE CASCADE.
-- This script has not been run against a real database by the project.

SET VERIFY OFF
SET SERVEROUTPUT ON
DEFINE prove_user = &1
DEFINE prove_password = &2
DEFINE olr_user = &3

CREATE USER &prove_user IDENTIFIED BY "&prove_password";
GRANT CREATE SESSION, CREATE TABLE, CREATE SEQUENCE, CREATE VIEW, CREATE PROCEDURE, CREATE TRIGGER,
  CREATE TYPE, CREATE CLUSTER TO &prove_user;

-- 2 GB in the default tablespace are enough for all scenarios, those of 300,000 rows too.
DECLARE
  name VARCHAR2(128);
BEGIN
  SELECT default_tablespace INTO name FROM dba_users WHERE username = UPPER('&prove_user');
  EXECUTE IMMEDIATE 'ALTER USER &prove_user QUOTA 2G ON ' || name;
  DBMS_OUTPUT.PUT_LINE('quota of 2 GB on ' || name);
END;
/

-- The rest is optional. What it lets you try stands behind each; `prove` says what it could not try.

-- The second judge, LogMiner (in 11.2 and before there is no LOGMINING; leave the first line out).
GRANT LOGMINING TO &olr_user;
GRANT EXECUTE ON SYS.DBMS_LOGMNR TO &olr_user;
GRANT SELECT ON SYS.V_$LOGMNR_CONTENTS TO &olr_user;

-- The scenarios of distributed transactions.
GRANT EXECUTE ON SYS.DBMS_XA TO &prove_user;

-- Switches logs, so that no scenario waits for ARCHIVE_LAG_TARGET. It is a wide right, and a PDB does not
-- switch logs whoever asks: there set `source.redo` to "online".
-- GRANT ALTER SYSTEM TO &prove_user;

-- The scenarios of encryption want a tablespace, in a database that has a wallet:
-- CREATE TABLESPACE OLR_PROVE_ENCRYPTED DATAFILE SIZE 100M ENCRYPTION ENCRYPT;
-- ALTER USER &prove_user QUOTA 100M ON OLR_PROVE_ENCRYPTED;
