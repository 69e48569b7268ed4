-- purpose: primary keys change to unused values, and to values that the same statement frees
-- covers: key-swaps
CREATE TABLE k (id NUMBER(6) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO k SELECT LEVEL, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 20;
COMMIT;
UPDATE k SET id = id + 1;
COMMIT;
UPDATE k SET id = 23 - id;
COMMIT;
UPDATE k SET id = id + 100 WHERE MOD(id, 2) = 0;
UPDATE k SET id = id - 1 WHERE id < 100;
COMMIT;
-- error: ORA-00001
UPDATE k SET id = 7;
DELETE FROM k WHERE id > 100;
COMMIT;
