-- purpose: characters of two and four bytes that begin on one LOB page and end on the next
-- others: tools that decode page by page break such a character
-- covers: lob-out-of-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l SELECT LEVEL, TO_CLOB(RPAD('x', LEVEL, 'x')) || REPLACE(RPAD('y', 1000, 'y'), 'y', '😀') || REPLACE(RPAD('y', 1000, 'y'), 'y', '😀') || REPLACE(RPAD('y', 1000, 'y'), 'y', '😀') FROM dual CONNECT BY LEVEL <= 4;
COMMIT;
UPDATE l SET c = REPLACE(c, 'x', 'é');
COMMIT;
