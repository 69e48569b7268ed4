-- purpose: LOBs that are small enough to be stored in the row: set, changed, emptied, set to NULL
-- covers: lob-in-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, b BLOB, n NCLOB);
INSERT INTO l VALUES (1, 'clob', HEXTORAW('00FF'), N'nclob ñ');
INSERT INTO l VALUES (2, NULL, NULL, NULL);
INSERT INTO l VALUES (3, 'żółć 日本', EMPTY_BLOB(), N'日本');
COMMIT;
UPDATE l SET c = c || ' more', b = HEXTORAW('0102030405') WHERE id = 1;
UPDATE l SET c = 'was null', n = N'set' WHERE id = 2;
COMMIT;
UPDATE l SET c = NULL, b = NULL WHERE id = 3;
COMMIT;
DELETE FROM l WHERE id = 1;
COMMIT;
