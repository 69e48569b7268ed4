-- purpose: a transaction stays open over several log switches; other transactions commit in each log
-- covers: over-many-logs
CREATE TABLE o (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO o SELECT LEVEL, 'start' FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
-- start
UPDATE o SET v = 'long 1' WHERE id = 1;
ALTER SYSTEM SWITCH LOGFILE;
-- session: B
UPDATE o SET v = 'B' WHERE id = 2;
COMMIT;
-- session: A
UPDATE o SET v = 'long 2' WHERE id = 3;
-- session: B
ALTER SYSTEM SWITCH LOGFILE;
DELETE FROM o WHERE id = 4;
COMMIT;
ALTER SYSTEM SWITCH LOGFILE;
-- session: A
INSERT INTO o VALUES (20, 'long 3');
COMMIT;
ALTER SYSTEM SWITCH LOGFILE;
