-- purpose: LOBs of several pages, SECUREFILE
-- covers: lob-out-of-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, b BLOB);
INSERT INTO l VALUES (1, TO_CLOB(RPAD('a', 4000, 'A')) || RPAD('b', 4000, 'B') || RPAD('c', 4000, 'C'), NULL);
INSERT INTO l VALUES (2, RPAD('short', 100, 's'), UTL_RAW.CAST_TO_RAW(RPAD('r', 2000, 'R')));
COMMIT;
UPDATE l SET c = c || c WHERE id = 1;
COMMIT;
UPDATE l SET c = 'short now' WHERE id = 1;
UPDATE l SET c = TO_CLOB(RPAD('x', 4000, 'X')) || RPAD('y', 4000, 'Y') WHERE id = 2;
COMMIT;
DELETE FROM l;
COMMIT;
