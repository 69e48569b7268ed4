-- purpose: a trigger writes its journal in autonomous transactions, which stay if the statement is undone
-- covers: triggers, autonomous
-- same: no, PostgreSQL has no autonomous transactions
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v NUMBER(6));
CREATE TABLE journal (no NUMBER(6) PRIMARY KEY, what VARCHAR2(40));
CREATE SEQUENCE journal_no;
CREATE TRIGGER t_journal BEFORE UPDATE ON t FOR EACH ROW
DECLARE
  PRAGMA AUTONOMOUS_TRANSACTION;
BEGIN
  INSERT INTO journal VALUES (journal_no.NEXTVAL, 'somebody updated ' || :OLD.id);
  COMMIT;
END;
/
INSERT INTO t SELECT LEVEL, LEVEL FROM dual CONNECT BY LEVEL <= 3;
COMMIT;
-- start
UPDATE t SET v = v + 1;
ROLLBACK;
UPDATE t SET v = v + 2 WHERE id = 1;
COMMIT;
