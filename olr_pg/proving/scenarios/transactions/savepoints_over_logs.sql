-- purpose: a rollback in the third log to a savepoint in the first log
-- others: readers that forget the changes of finished logs undo the wrong changes
-- covers: savepoints, over-many-logs
CREATE TABLE s (id NUMBER(4) PRIMARY KEY, v NUMBER(4));
INSERT INTO s SELECT LEVEL, 0 FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
-- start
UPDATE s SET v = 1 WHERE id = 1;
SAVEPOINT one;
UPDATE s SET v = 2 WHERE id < 5;
ALTER SYSTEM SWITCH LOGFILE;
DELETE FROM s WHERE id > 5;
ALTER SYSTEM SWITCH LOGFILE;
ROLLBACK TO one;
UPDATE s SET v = 3 WHERE id = 2;
COMMIT;
