-- purpose: letters of many scripts, from right to left, combined from several, and the last ones of Unicode
-- covers: character-sets
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(200 CHAR), c CLOB);
INSERT INTO t VALUES (1, 'עברית العربية', 'فارسی');
INSERT INTO t VALUES (2, 'ไทย हिन्दी ქართული', '한국어 中文 日本語');
INSERT INTO t VALUES (3, 'é é Å', '👨‍👩‍👧 🇨🇭');
INSERT INTO t VALUES (4, 'ﬁ ẞ İ ı ſ', '𝔘𝔫𝔦𝔠𝔬𝔡𝔢 􏿽');
COMMIT;
UPDATE t SET v = v || ' ' || c, c = v;
COMMIT;
DELETE FROM t WHERE id = 2;
COMMIT;
