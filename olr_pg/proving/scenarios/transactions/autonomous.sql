-- purpose: an autonomous transaction commits inside another transaction, which is rolled back
-- others: a session has two open transactions; tools that expect only one mix them
-- covers: autonomous
-- same: no, PostgreSQL has no autonomous transactions
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
CREATE TABLE journal (no NUMBER(4) PRIMARY KEY, what VARCHAR2(40));
INSERT INTO t VALUES (1, 'start');
COMMIT;
-- start
UPDATE t SET v = 'gone';
DECLARE
  PRAGMA AUTONOMOUS_TRANSACTION;
BEGIN
  INSERT INTO journal VALUES (1, 'tried to update');
  COMMIT;
END;
/
INSERT INTO t VALUES (2, 'gone');
ROLLBACK;
INSERT INTO t VALUES (3, 'kept');
DECLARE
  PRAGMA AUTONOMOUS_TRANSACTION;
BEGIN
  INSERT INTO journal VALUES (2, 'gone');
  ROLLBACK;
  INSERT INTO journal VALUES (3, 'kept');
  COMMIT;
END;
/
COMMIT;
