-- purpose: a trigger sets columns of the changed row
-- others: the redo contains the values that the trigger has set, not those of the statement
-- covers: triggers
-- same: no, PostgreSQL writes triggers otherwise
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20), upper_v VARCHAR2(20), version NUMBER(4));
CREATE TRIGGER t_set BEFORE INSERT OR UPDATE ON t FOR EACH ROW
BEGIN
  :NEW.upper_v := UPPER(:NEW.v);
  :NEW.version := NVL(:OLD.version, 0) + 1;
END;
/
INSERT INTO t (id, v) VALUES (1, 'start');
COMMIT;
-- start
INSERT INTO t (id, v) SELECT LEVEL + 1, 'row ' || LEVEL FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
UPDATE t SET v = v || '!' WHERE id < 4;
UPDATE t SET upper_v = 'ignored' WHERE id = 5;
COMMIT;
DROP TRIGGER t_set;
UPDATE t SET v = 'untouched' WHERE id = 1;
COMMIT;
