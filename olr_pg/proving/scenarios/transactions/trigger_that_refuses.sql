-- purpose: a trigger rejects the third row of a statement: the first two rows and the trigger's own changes are undone
-- covers: triggers, fail-halfway
-- same: no, PostgreSQL writes triggers otherwise
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v NUMBER(6));
CREATE TABLE journal (no NUMBER(6) PRIMARY KEY);
CREATE TRIGGER t_check BEFORE UPDATE OF v ON t FOR EACH ROW
BEGIN
  INSERT INTO journal VALUES (:OLD.id);
  IF :NEW.v > 25 THEN
    RAISE_APPLICATION_ERROR(-20002, 'too much');
  END IF;
END;
/
INSERT INTO t SELECT LEVEL, LEVEL * 10 FROM dual CONNECT BY LEVEL <= 3;
COMMIT;
-- start
-- error: ORA-20002
UPDATE t SET v = v + 1;
UPDATE t SET v = v + 1 WHERE id < 3;
UPDATE t SET id = id + 10;
COMMIT;
