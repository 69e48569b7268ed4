-- purpose: EMPTY_CLOB is a LOB of length 0, not NULL
-- covers: lob-in-row
-- same: no, PostgreSQL has empty texts
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, b BLOB);
INSERT INTO l VALUES (1, EMPTY_CLOB(), EMPTY_BLOB());
COMMIT;
UPDATE l SET c = 'filled' WHERE id = 1;
COMMIT;
UPDATE l SET c = EMPTY_CLOB(), b = NULL;
COMMIT;
