-- purpose: values that tools take for NULL, for an escape or for a placeholder
-- others: tools write 0 and empty LOBs as NULL, and NULL as an empty LOB; a backslash at the end joins columns
-- covers: nulls lengths
-- same: no, literals differ
CREATE TABLE f (id NUMBER(6) PRIMARY KEY, n NUMBER, v VARCHAR2(60), ch CHAR(3), r RAW(4), c CLOB, b BLOB, d BINARY_DOUBLE);
INSERT INTO f VALUES (1, 0, '0', '0', HEXTORAW('00'), '0', HEXTORAW('00'), 0);
INSERT INTO f VALUES (2, 0, ' ', ' ', HEXTORAW('30'), ' ', HEXTORAW('30'), 0);
INSERT INTO f VALUES (3, -0.5, '\N', '\N', NULL, '\N', NULL, -0.5D);
INSERT INTO f VALUES (4, NULL, '\.', '\.', NULL, '\.', NULL, NULL);
INSERT INTO f VALUES (5, NULL, 'NULL', 'nul', NULL, EMPTY_CLOB(), EMPTY_BLOB(), NULL);
INSERT INTO f VALUES (6, 1, 'C:\dir\' , '\', NULL, 'C:\dir\', NULL, 1);
INSERT INTO f VALUES (7, 1, 'Infinity', 'NaN', NULL, '__debezium_unavailable_value', NULL, 1);
INSERT INTO f VALUES (8, 1, 'a' || CHR(9) || 'b' || CHR(10) || 'c' || CHR(13), CHR(10), NULL, CHR(10), NULL, 1);
COMMIT;
-- start
INSERT INTO f SELECT id + 10, n, v, ch, r, c, b, d FROM f;
COMMIT;
UPDATE f SET n = 0, v = '0', ch = '0', c = '0' WHERE id > 12;
COMMIT;
UPDATE f SET n = NULL, v = NULL, ch = NULL, c = NULL, b = NULL, r = NULL WHERE id = 11;
UPDATE f SET c = EMPTY_CLOB(), b = EMPTY_BLOB() WHERE id = 12;
COMMIT;
