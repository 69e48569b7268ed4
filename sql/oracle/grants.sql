-- Grants the account of olr_pg the privileges that `olr-pg run` needs (Oracle 11.2 to 26ai). Run it as
-- SYS in the container that contains the tables:
--
--   sqlplus sys@host:1521/orclpdb1 as sysdba @grants.sql OLR
--
-- The account may read the dictionary, also as of an SCN, and the views that list the archived logs and
-- report NOLOGGING operations. It cannot read the rows of your tables. The script prints every grant, and
-- skips objects that your release does not have. `olr-pg doctor` checks each grant.
-- The role SELECT_CATALOG_ROLE and the privilege SELECT ANY DICTIONARY are not needed, and are not enough:
-- with neither of them can the account read a table as of an SCN, and SELECT ANY DICTIONARY does not
-- include SYS.USER$.

SET VERIFY OFF
SET SERVEROUTPUT ON
DEFINE olr_user = &1

DECLARE
  token_sets SYS_REFCURSOR;
  suffix VARCHAR2(128);
  has_token_sets BOOLEAN := TRUE;

  PROCEDURE give(privileges VARCHAR2, name VARCHAR2, owner VARCHAR2 DEFAULT 'SYS') IS
    does_not_exist EXCEPTION;
    PRAGMA EXCEPTION_INIT(does_not_exist, -942);
  BEGIN
    EXECUTE IMMEDIATE
      'GRANT ' || privileges || ' ON ' || owner || '.' || name || ' TO &olr_user';
    DBMS_OUTPUT.PUT_LINE('granted ' || privileges || ' on ' || name);
  EXCEPTION
    WHEN does_not_exist THEN
      DBMS_OUTPUT.PUT_LINE('this database has no ' || name);
      IF name = 'XDB$TTSET' THEN
        has_token_sets := FALSE;
      END IF;
  END;
BEGIN
  FOR t IN (
    SELECT COLUMN_VALUE AS name FROM TABLE(SYS.ODCIVARCHAR2LIST(
      'USER$', 'OBJ$', 'TAB$', 'COL$', 'CDEF$', 'CCOL$', 'IND$', 'ICOL$', 'INDPART$',
      'TABPART$', 'TABCOMPART$', 'TABSUBPART$', 'LOB$', 'LOBFRAG$', 'LOBCOMPPART$', 'TS$',
      'ECOL$', 'DEFERRED_STG$', 'SEG$', 'CON$', 'COM$', 'SEQ$'
    ))
  ) LOOP
    give('SELECT, FLASHBACK', t.name);
  END LOOP;
  FOR v IN (
    SELECT COLUMN_VALUE AS name FROM TABLE(SYS.ODCIVARCHAR2LIST(
      'V_$DATABASE', 'V_$DATABASE_INCARNATION', 'V_$TRANSPORTABLE_PLATFORM', 'V_$ARCHIVED_LOG',
      'V_$ARCHIVE_DEST', 'V_$LOG', 'V_$THREAD', 'GV_$TRANSACTION', 'V_$DATAFILE',
      'V_$LOGFILE', 'V_$STANDBY_LOG', 'V_$ENCRYPTED_TABLESPACES', 'V_$PDB_INCARNATION',
      'DBA_TABLES', 'DBA_TAB_PARTITIONS', 'DBA_TAB_SUBPARTITIONS', 'DBA_LOBS',
      'DBA_LOB_PARTITIONS', 'DBA_LOB_SUBPARTITIONS', 'DBA_SUPPLEMENTAL_LOGGING'
    ))
  ) LOOP
    give('SELECT', v.name);
  END LOOP;
  -- The element and attribute names of binary XML. The names of their tables end with the suffix of a
  -- token set.
  give('SELECT, FLASHBACK', 'XDB$TTSET', 'XDB');
  IF has_token_sets THEN
    OPEN token_sets FOR 'SELECT TOKSUF FROM XDB.XDB$TTSET WHERE FLAGS = 0';
    LOOP
      FETCH token_sets INTO suffix;
      EXIT WHEN token_sets%NOTFOUND;
      give('SELECT, FLASHBACK', 'X$NM' || suffix, 'XDB');
      give('SELECT, FLASHBACK', 'X$QN' || suffix, 'XDB');
    END LOOP;
    CLOSE token_sets;
  END IF;
END;
/
