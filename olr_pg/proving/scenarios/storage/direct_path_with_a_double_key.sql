-- purpose: a direct-path load with keys that already exist fails as a whole
-- covers: direct-path, fail-halfway
CREATE TABLE d (id NUMBER(6) PRIMARY KEY, v VARCHAR2(50));
INSERT INTO d VALUES (5, 'before');
COMMIT;
-- start
-- error: ORA-00001
INSERT /*+ APPEND */ INTO d SELECT LEVEL, 'never' FROM dual CONNECT BY LEVEL <= 10;
INSERT INTO d VALUES (6, 'after');
COMMIT;
