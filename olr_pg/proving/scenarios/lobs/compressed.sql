-- purpose: SECUREFILE LOBs that are compressed or deduplicated: their pages do not contain the bytes of the value
-- others: tools that do not check this deliver the compressed bytes as the value
-- covers: lob-compressed
-- needs: deduplication
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, b BLOB) LOB (c) STORE AS SECUREFILE (COMPRESS MEDIUM) LOB (b) STORE AS SECUREFILE (DEDUPLICATE);
INSERT INTO l VALUES (1, RPAD('x', 4000, 'x'), UTL_RAW.CAST_TO_RAW(RPAD('y', 2000, 'y')));
INSERT INTO l VALUES (2, RPAD('x', 4000, 'x'), UTL_RAW.CAST_TO_RAW(RPAD('y', 2000, 'y')));
COMMIT;
UPDATE l SET c = c || 'z';
COMMIT;
