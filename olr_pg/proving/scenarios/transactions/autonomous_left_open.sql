-- purpose: an autonomous transaction that is not ended is rolled back with an error
-- covers: autonomous, fail-halfway
-- same: no, PostgreSQL has no autonomous transactions
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO t VALUES (1, 'start');
COMMIT;
-- start
UPDATE t SET v = 'kept';
-- error: ORA-06519
DECLARE
  PRAGMA AUTONOMOUS_TRANSACTION;
BEGIN
  INSERT INTO t VALUES (2, 'gone');
END;
/
COMMIT;
