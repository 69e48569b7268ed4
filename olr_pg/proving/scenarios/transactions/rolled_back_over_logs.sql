-- purpose: a rollback in a later log undoes changes of an earlier log
-- covers: rolled-back, over-many-logs
CREATE TABLE o (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO o SELECT LEVEL, 'start' FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
-- start
UPDATE o SET v = 'gone' WHERE id < 5;
SAVEPOINT one;
DELETE FROM o WHERE id > 5;
ALTER SYSTEM SWITCH LOGFILE;
ROLLBACK TO one;
INSERT INTO o VALUES (20, 'kept');
ALTER SYSTEM SWITCH LOGFILE;
COMMIT;
DELETE FROM o;
ALTER SYSTEM SWITCH LOGFILE;
ROLLBACK;
UPDATE o SET v = 'end' WHERE id = 1;
COMMIT;
