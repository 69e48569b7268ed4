-- purpose: a key that one transaction frees is used by the next transaction of another session
-- covers: key-swaps
CREATE TABLE k (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO k VALUES (1, 'A');
COMMIT;
-- start
DELETE FROM k WHERE id = 1;
-- session: B
INSERT INTO k VALUES (1, 'B');
-- session: A
COMMIT;
-- session: B
COMMIT;
UPDATE k SET id = 2;
-- session: A
INSERT INTO k VALUES (3, 'A');
COMMIT;
-- session: B
COMMIT;
INSERT INTO k VALUES (1, 'B again');
COMMIT;
