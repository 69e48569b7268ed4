-- purpose: the keys of rows with LOBs change, also in a circle; redo contains no LOB value then
-- others: tools that delete and insert such a row lose the LOB, or write a placeholder
-- covers: key-swaps lob-in-row lob-out-of-row
-- same: no, PostgreSQL has no LOB storage
CREATE TABLE kl (id NUMBER(6) PRIMARY KEY, v VARCHAR2(10), c CLOB, b BLOB) LOB (c) STORE AS (DISABLE STORAGE IN ROW);
INSERT INTO kl VALUES (1, 'one', 'first', HEXTORAW('01'));
INSERT INTO kl VALUES (2, 'two', 'second', HEXTORAW('02'));
INSERT INTO kl VALUES (3, 'three', RPAD('x', 3000, 'y'), HEXTORAW('03'));
INSERT INTO kl VALUES (4, 'four', NULL, EMPTY_BLOB());
COMMIT;
-- start
UPDATE kl SET id = 3 - id WHERE id < 3;
COMMIT;
UPDATE kl SET id = id + 1;
COMMIT;
UPDATE kl SET id = 10 WHERE id = 2;
UPDATE kl SET v = 'ten' WHERE id = 10;
UPDATE kl SET id = 2 WHERE id = 10;
COMMIT;
UPDATE kl SET id = 20, c = 'changed too' WHERE id = 2;
INSERT INTO kl VALUES (2, 'new', 'again', HEXTORAW('22'));
UPDATE kl SET id = 21 WHERE id = 3;
DELETE FROM kl WHERE id = 4;
UPDATE kl SET id = 4 WHERE id = 21;
COMMIT;
DELETE FROM kl WHERE id = 20;
UPDATE kl SET id = 20 WHERE id = 2;
UPDATE kl SET c = c || '!' WHERE id = 20;
COMMIT;
INSERT INTO kl VALUES (30, 'n', 'thirty', NULL);
UPDATE kl SET id = 31 WHERE id = 30;
UPDATE kl SET id = 30 WHERE id = 31;
COMMIT;
