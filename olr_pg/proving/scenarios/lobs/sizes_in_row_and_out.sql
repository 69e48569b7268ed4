-- purpose: CLOBs at the size at which they leave the row (1,982 characters), and BLOBs (3,964 bytes)
-- others: tools that read only the row deliver the bytes of the locator, or nothing
-- covers: lob-in-row, lob-out-of-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, b BLOB);
INSERT INTO l SELECT LEVEL, RPAD('c', 1970 + LEVEL, 'c'), UTL_RAW.CAST_TO_RAW(RPAD('b', 1990 + LEVEL, 'b')) FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
UPDATE l SET c = c || 'more' WHERE id > 5;
COMMIT;
UPDATE l SET c = SUBSTR(c, 1, 100) WHERE id < 4;
COMMIT;
DELETE FROM l WHERE MOD(id, 2) = 0;
COMMIT;
