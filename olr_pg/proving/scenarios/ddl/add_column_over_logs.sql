-- purpose: DDL in one log, the changed rows in the next logs; another session has an older open transaction
-- others: readers that use the newest definition for older redo assign values to wrong columns
-- covers: add-column, over-many-logs
CREATE TABLE a (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
CREATE TABLE b (id NUMBER(4) PRIMARY KEY);
INSERT INTO a SELECT LEVEL, 'old' FROM dual CONNECT BY LEVEL <= 3;
COMMIT;
-- start
UPDATE a SET v = 'before';
COMMIT;
-- session: B
INSERT INTO b VALUES (1);
ALTER SYSTEM SWITCH LOGFILE;
-- session: A
ALTER TABLE a ADD (n NUMBER(4));
ALTER SYSTEM SWITCH LOGFILE;
UPDATE a SET n = id;
COMMIT;
ALTER SYSTEM SWITCH LOGFILE;
-- session: B
COMMIT;
