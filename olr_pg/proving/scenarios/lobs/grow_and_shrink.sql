-- purpose: a LOB goes from NULL into the row, out of the row, back, to empty and to NULL, each in its own transaction
-- covers: lob-in-row, lob-out-of-row
-- same: no, PostgreSQL has empty texts
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, b BLOB);
INSERT INTO l VALUES (1, NULL, NULL);
COMMIT;
UPDATE l SET c = 'small', b = HEXTORAW('00');
COMMIT;
UPDATE l SET c = RPAD('x', 4000, 'x'), b = UTL_RAW.CAST_TO_RAW(RPAD('x', 2000, 'x'));
COMMIT;
UPDATE l SET c = c || c || c;
COMMIT;
UPDATE l SET c = 'small again', b = HEXTORAW('FF');
COMMIT;
UPDATE l SET c = EMPTY_CLOB(), b = EMPTY_BLOB();
COMMIT;
UPDATE l SET c = NULL, b = NULL;
COMMIT;
