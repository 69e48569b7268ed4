-- purpose: INSERT with APPEND writes complete blocks after the existing blocks
-- others: several tools do not read these blocks at all
-- covers: direct-path
CREATE TABLE d (id NUMBER(6) PRIMARY KEY, v VARCHAR2(50));
INSERT INTO d SELECT LEVEL, 'before' FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
-- start
INSERT /*+ APPEND */ INTO d SELECT LEVEL + 100, 'loaded ' || LEVEL FROM dual CONNECT BY LEVEL <= 500;
COMMIT;
UPDATE d SET v = 'changed' WHERE id BETWEEN 100 AND 120;
DELETE FROM d WHERE id > 550;
COMMIT;
INSERT INTO d VALUES (1000, 'after');
COMMIT;
