-- purpose: an empty text is NULL, when it is stored and in comparisons
-- covers: nulls
-- same: no, PostgreSQL has empty texts
CREATE TABLE e (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10), c CHAR(3), r RAW(4));
INSERT INTO e VALUES (1, '', '', '');
INSERT INTO e VALUES (2, 'x', 'x', 'FF');
COMMIT;
UPDATE e SET v = SUBSTR(v, 2), r = '';
COMMIT;
UPDATE e SET v = 'was null' WHERE v IS NULL;
COMMIT;
