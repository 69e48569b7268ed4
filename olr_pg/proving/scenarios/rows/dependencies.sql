-- purpose: rows of a table with ROWDEPENDENCIES, which have an SCN before their columns
-- covers: rowdependencies
CREATE TABLE d (id NUMBER(4) PRIMARY KEY, v VARCHAR2(100)) ROWDEPENDENCIES;
INSERT INTO d SELECT LEVEL, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
UPDATE d SET v = RPAD(v, 90, 'x') WHERE id > 5;
DELETE FROM d WHERE id = 3;
COMMIT;
SELECT * FROM d WHERE id < 3 FOR UPDATE;
UPDATE d SET v = 'locked first' WHERE id = 1;
COMMIT;
