-- Creates the account of olr_pg for several pluggable databases (12.1 to 26ai): a common user that switches
-- to each PDB (docs/containers.md). Run this script as SYS in the root, then grants.sql in each PDB that
-- contains your tables:
--
--   sqlplus / as sysdba
--   SQL> @user_common.sql C##OLR "a password"
--   sqlplus sys@host:1521/orclpdb1 as sysdba @grants.sql C##OLR
--   sqlplus sys@host:1521/orclpdb2 as sysdba @grants.sql C##OLR
--
-- All users of the host can see the arguments of a program, so give the password to SQL*Plus at its prompt.
-- Set `source.server` to a service of the database, and `source.containers` to the list of the PDBs.

SET VERIFY OFF
DEFINE olr_user = &1
DEFINE olr_password = &2

CREATE USER &olr_user IDENTIFIED BY "&olr_password" CONTAINER = ALL;
GRANT CREATE SESSION, SET CONTAINER TO &olr_user CONTAINER = ALL;
