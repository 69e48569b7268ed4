-- The additional grants that `olr-pg initial-load` and `olr-pg verify` need: to read the rows of the tables
-- and their extents. Run it as SYS in the container that contains the tables, once for each schema:
--
--   sqlplus sys@host:1521/orclpdb1 as sysdba @load_grants.sql OLR SHOP
--
-- The script grants all tables that the schema contains now. Run it again after you create tables. Without
-- DBA_EXTENTS, the load samples the tables' rows instead. Without V$PARAMETER and V$UNDOSTAT, the load
-- cannot report how much undo it needs. Without DBA_2PC_PENDING, the load and the cut-over do not notice
-- distributed transactions that are in doubt. `olr-pg doctor --load` checks these grants. `olr-pg run` does
-- not need them: revoke them after the cut-over.

SET VERIFY OFF
SET SERVEROUTPUT ON
DEFINE olr_user = &1
DEFINE olr_schema = &2

GRANT SELECT ON SYS.DBA_EXTENTS TO &olr_user;
GRANT SELECT ON SYS.DBA_2PC_PENDING TO &olr_user;
GRANT SELECT ON SYS.V_$PARAMETER TO &olr_user;
GRANT SELECT ON SYS.V_$UNDOSTAT TO &olr_user;

BEGIN
  FOR t IN (
    SELECT owner, table_name FROM dba_tables
    WHERE owner = '&olr_schema' AND nested = 'NO' AND secondary = 'N' AND temporary = 'N'
      AND (iot_type IS NULL OR iot_type = 'IOT')
  ) LOOP
    EXECUTE IMMEDIATE 'GRANT SELECT, FLASHBACK ON "' || t.owner || '"."' || t.table_name
      || '" TO &olr_user';
    DBMS_OUTPUT.PUT_LINE('granted SELECT, FLASHBACK on ' || t.table_name);
  END LOOP;
END;
/
