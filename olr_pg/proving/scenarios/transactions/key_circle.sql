-- purpose: three rows exchange their keys in a circle, with single updates and an unused key
-- covers: key-swaps
CREATE TABLE k (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO k SELECT LEVEL, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 3;
COMMIT;
UPDATE k SET id = 0 WHERE id = 1;
UPDATE k SET id = 1 WHERE id = 2;
UPDATE k SET id = 2 WHERE id = 3;
UPDATE k SET id = 3 WHERE id = 0;
COMMIT;
UPDATE k SET id = 4 - id;
COMMIT;
