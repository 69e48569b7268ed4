-- purpose: eight LOB columns in a row, small and large ones in turn
-- covers: several-in-one-transaction
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, a CLOB, b BLOB, c CLOB, d BLOB, e CLOB, f BLOB, g CLOB, h BLOB);
INSERT INTO l VALUES (1, 'a', HEXTORAW('0B'), RPAD('c', 4000, 'c'), UTL_RAW.CAST_TO_RAW(RPAD('d', 2000, 'd')), 'e', NULL, RPAD('g', 3000, 'g'), HEXTORAW('88'));
INSERT INTO l (id) VALUES (2);
COMMIT;
UPDATE l SET a = g, g = a, h = d;
COMMIT;
UPDATE l SET e = RPAD('e', 4000, 'e'), f = HEXTORAW('0F') WHERE id = 2;
COMMIT;
DELETE FROM l WHERE id = 1;
COMMIT;
