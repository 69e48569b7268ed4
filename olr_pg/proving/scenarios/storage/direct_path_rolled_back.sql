-- purpose: a direct-path load is rolled back: the redo has no undo of its blocks, which are just not used
-- others: tools that wait for the undo of each row keep the rows
-- covers: direct-path, rolled-back
CREATE TABLE d (id NUMBER(6) PRIMARY KEY, v VARCHAR2(50));
INSERT INTO d SELECT LEVEL, 'before' FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
-- start
INSERT /*+ APPEND */ INTO d SELECT LEVEL + 100, 'gone' FROM dual CONNECT BY LEVEL <= 200;
ROLLBACK;
INSERT /*+ APPEND */ INTO d SELECT LEVEL + 100, 'kept' FROM dual CONNECT BY LEVEL <= 50;
COMMIT;
UPDATE d SET v = 'after' WHERE id > 140;
COMMIT;
