-- The additional grants that `olr-pg initial-load` and `olr-pg verify` need: to read the rows of the tables
-- and their extents. Run it as SYS in the container that contains the tables, once for each schema:
--
--   sqlplus sys@host:1521/orclpdb1 as sysdba @load_grants.sql OLR SHOP
--
-- The script grants all tables that the schema contains now. Run it again after you create tables. Without
-- DBA_EXTENTS, the load samples the tables' rows instead. Without V$PARAMETER and V$UNDOSTAT, the load
-- cannot report how much undo it needs. Without DBA_2PC_PENDING, the load and the cut-over do not notice
-- distributed transactions that are in doubt. Without REDACTION_POLICIES, the load does not notice that Data
-- Redaction replaces values. If a security policy hides rows or replaces values, the load also needs EXEMPT
-- ACCESS POLICY or EXEMPT REDACTION POLICY, which this script does not grant. `olr-pg doctor --load` checks
-- all of this. `olr-pg run` does not need these grants: revoke them after the cut-over.

SET VERIFY OFF
SET SERVEROUTPUT ON
DEFINE olr_user = &1
DEFINE olr_schema = &2

GRANT SELECT ON SYS.DBA_EXTENTS TO &olr_user;
GRANT SELECT ON SYS.DBA_2PC_PENDING TO &olr_user;
GRANT SELECT ON SYS.V_$PARAMETER TO &olr_user;
GRANT SELECT ON SYS.V_$UNDOSTAT TO &olr_user;

DECLARE
  granted PLS_INTEGER := 0;
  does_not_exist EXCEPTION;
  PRAGMA EXCEPTION_INIT(does_not_exist, -942);
BEGIN
  BEGIN
    EXECUTE IMMEDIATE 'GRANT SELECT ON SYS.REDACTION_POLICIES TO &olr_user';
  EXCEPTION
    WHEN does_not_exist THEN
      DBMS_OUTPUT.PUT_LINE('this database has no Data Redaction');
  END;
  FOR t IN (
    SELECT owner, table_name FROM dba_tables
    WHERE owner = '&olr_schema' AND nested = 'NO' AND secondary = 'N' AND temporary = 'N'
      AND (iot_type IS NULL OR iot_type = 'IOT')
  ) LOOP
    EXECUTE IMMEDIATE 'GRANT SELECT, FLASHBACK ON "' || t.owner || '"."' || t.table_name
      || '" TO &olr_user';
    DBMS_OUTPUT.PUT_LINE('granted SELECT, FLASHBACK on ' || t.table_name);
    granted := granted + 1;
  END LOOP;
  IF granted = 0 THEN
    RAISE_APPLICATION_ERROR(-20001, 'the schema &olr_schema has no tables in this container: write its name as in'
      || ' DBA_TABLES, usually in capitals');
  END IF;
END;
/
