-- purpose: text of two, three and four bytes a letter, in both character sets
-- covers: character-sets
-- same: no, NCHAR counts UTF-16 units
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(100 CHAR), n NVARCHAR2(50), c CHAR(10 CHAR), nc NCHAR(10));
INSERT INTO t VALUES (1, 'zażółć gęślą jaźń', N'zażółć gęślą jaźń', 'żółw', N'żółw');
INSERT INTO t VALUES (2, '日本語テキスト', N'日本語', '日本', N'日本');
INSERT INTO t VALUES (3, '😀 emoji 𝄞', N'😀', '😀', N'😀');
INSERT INTO t VALUES (4, 'Ωмега', UNISTR('\03A9'), 'Ω', UNISTR('\00E4'));
COMMIT;
UPDATE t SET v = v || ' ' || v, n = n || N'ß';
COMMIT;
UPDATE t SET v = UPPER(v) WHERE id < 3;
COMMIT;
