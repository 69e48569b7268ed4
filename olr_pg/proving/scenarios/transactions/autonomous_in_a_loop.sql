-- purpose: a procedure writes a journal in autonomous transactions, between the rows of the main transaction
-- covers: autonomous
-- same: no, PostgreSQL has no autonomous transactions
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
CREATE TABLE journal (no NUMBER(4) PRIMARY KEY, what VARCHAR2(40));
INSERT INTO t VALUES (100, 'start');
COMMIT;
-- start
DECLARE
  PROCEDURE note (k NUMBER, text VARCHAR2) IS
    PRAGMA AUTONOMOUS_TRANSACTION;
  BEGIN
    INSERT INTO journal VALUES (k, text);
    COMMIT;
  END note;
BEGIN
  FOR i IN 1..6 LOOP
    INSERT INTO t VALUES (i, 'row');
    note(i, 'row ' || i);
  END LOOP;
  ROLLBACK;
  INSERT INTO t VALUES (7, 'kept');
  note(7, 'last');
END;
/
COMMIT;
