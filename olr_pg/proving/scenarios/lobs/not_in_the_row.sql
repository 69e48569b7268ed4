-- purpose: LOBs that are never stored in the row, even small ones
-- covers: lob-out-of-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, b BLOB) LOB (c) STORE AS SECUREFILE (DISABLE STORAGE IN ROW) LOB (b) STORE AS BASICFILE (DISABLE STORAGE IN ROW);
INSERT INTO l VALUES (1, 'small', HEXTORAW('01'));
INSERT INTO l VALUES (2, RPAD('x', 4000, 'y'), UTL_RAW.CAST_TO_RAW(RPAD('r', 2000, 's')));
COMMIT;
UPDATE l SET c = 'other', b = HEXTORAW('0203');
COMMIT;
DELETE FROM l WHERE id = 2;
COMMIT;
