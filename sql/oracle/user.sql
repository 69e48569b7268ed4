-- Creates the account of olr_pg in a database without containers (11.2 to 19c). Run this script as SYS,
-- then grants.sql:
--
--   sqlplus / as sysdba @user.sql OLR "a password"
--   sqlplus / as sysdba @grants.sql OLR

SET VERIFY OFF
DEFINE olr_user = &1
DEFINE olr_password = &2

CREATE USER &olr_user IDENTIFIED BY "&olr_password";
GRANT CREATE SESSION TO &olr_user;
