-- purpose: a trigger writes each change to a journal table, in the same transaction
-- others: the journal rows are written twice if the target has the trigger, too
-- covers: triggers
-- same: no, PostgreSQL writes triggers otherwise
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
CREATE TABLE journal (no NUMBER(6) PRIMARY KEY, what VARCHAR2(60));
CREATE SEQUENCE journal_no;
CREATE TRIGGER t_journal AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW
BEGIN
  IF INSERTING THEN
    INSERT INTO journal VALUES (journal_no.NEXTVAL, 'inserted ' || :NEW.id);
  ELSIF UPDATING THEN
    INSERT INTO journal VALUES (journal_no.NEXTVAL, :OLD.v || ' became ' || :NEW.v);
  ELSE
    INSERT INTO journal VALUES (journal_no.NEXTVAL, 'deleted ' || :OLD.id);
  END IF;
END;
/
INSERT INTO t VALUES (1, 'start');
COMMIT;
-- start
INSERT INTO t SELECT LEVEL + 1, 'row' FROM dual CONNECT BY LEVEL <= 4;
UPDATE t SET v = 'new' WHERE id < 3;
COMMIT;
DELETE FROM t WHERE id > 3;
ROLLBACK;
DELETE FROM t WHERE id = 3;
COMMIT;
