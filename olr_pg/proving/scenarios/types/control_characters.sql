-- purpose: texts with line breaks, tabs, quotes, backslashes and other special characters of file formats
-- others: tools that use CSV or SQL text fail with these
-- covers: character-sets
CREATE TABLE v (id NUMBER(4) PRIMARY KEY, v VARCHAR2(100), c CLOB);
INSERT INTO v VALUES (1, 'a' || CHR(10) || 'b' || CHR(13) || CHR(9), 'it''s "quoted"');
INSERT INTO v VALUES (2, 'C:\new\table \N \\', '{"json": [1, 2]}');
INSERT INTO v VALUES (3, CHR(1) || CHR(27) || CHR(127), 'a,b;c|d' || CHR(10));
INSERT INTO v VALUES (4, '%s {0} $1 :x ?', '<a href="b">&amp;</a>');
COMMIT;
UPDATE v SET v = v || CHR(10), c = c || CHR(10) || v;
COMMIT;
DELETE FROM v WHERE v LIKE 'C:%';
COMMIT;
