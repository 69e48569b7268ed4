-- What `olr-pg initial-load` and `olr-pg verify` need beside grants.sql: the rows of the tables, and
-- where they lie. Run as SYS in the container that holds the tables, once per schema:
--
--   sqlplus sys@host:1521/orclpdb1 as sysdba @load_grants.sql OLR SHOP
--
-- Every table of the schema is granted; tables that are created later are not. Without DBA_EXTENTS
-- the load samples the tables' rows instead; without V$PARAMETER and V$UNDOSTAT it cannot say how
-- much undo it would have needed. `olr-pg doctor --load` checks all of it. `run` alone needs nothing of this: take the grants
-- back after the cut-over.

SET VERIFY OFF
SET SERVEROUTPUT ON
DEFINE olr_user = &1
DEFINE olr_schema = &2

GRANT SELECT ON SYS.DBA_EXTENTS TO &olr_user;
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
