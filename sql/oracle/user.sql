-- Creates the account of olr_pg in a database without containers (11.2 to 19c). Run this script as SYS,
-- then grants.sql:
--
--   sqlplus / as sysdba
--   SQL> @user.sql OLR "a password"
--   sqlplus / as sysdba @grants.sql OLR
--
-- All users of the host can see the arguments of a program, so give the password to SQL*Plus at its prompt.

SET VERIFY OFF
DEFINE olr_user = &1
DEFINE olr_password = &2

CREATE USER &olr_user IDENTIFIED BY "&olr_password";
GRANT CREATE SESSION TO &olr_user;
