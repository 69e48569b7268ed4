-- Creates the account of olr_pg in a pluggable database (12.1 to 26ai): a local user of the PDB that
-- contains your tables. Run this script as SYS, then grants.sql in the same PDB:
--
--   sqlplus / as sysdba
--   SQL> @user_pdb.sql ORCLPDB1 OLR "a password"
--   sqlplus sys@host:1521/orclpdb1 as sysdba @grants.sql OLR
--
-- All users of the host can see the arguments of a program, so give the password to SQL*Plus at its prompt.
-- Set `source.server` to the service of the PDB: host:1521/orclpdb1.

SET VERIFY OFF
DEFINE olr_container = &1
DEFINE olr_user = &2
DEFINE olr_password = &3

ALTER SESSION SET CONTAINER = &olr_container;
CREATE USER &olr_user IDENTIFIED BY "&olr_password";
GRANT CREATE SESSION TO &olr_user;
