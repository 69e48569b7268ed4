-- purpose: a direct-path load in a transaction with changes of other tables; until its end, the loaded table cannot be used
-- covers: direct-path
-- same: no, PostgreSQL has no direct loads
CREATE TABLE d (id NUMBER(6) PRIMARY KEY, v VARCHAR2(50));
CREATE TABLE other (id NUMBER(6) PRIMARY KEY, n NUMBER(6));
INSERT INTO other SELECT LEVEL, 0 FROM dual CONNECT BY LEVEL <= 20;
COMMIT;
-- start
UPDATE other SET n = 1 WHERE id < 5;
INSERT /*+ APPEND */ INTO d SELECT id, 'loaded' FROM other;
-- error: ORA-12838
UPDATE d SET v = 'never';
UPDATE other SET n = 2 WHERE id > 15;
COMMIT;
UPDATE d SET v = 'now' WHERE id = 3;
COMMIT;
