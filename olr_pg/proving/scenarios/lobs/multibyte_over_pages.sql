-- purpose: letters of two and four bytes that lie across the end of a page
-- others: tools that decode page by page break the letter in two
-- covers: lob-out-of-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l SELECT LEVEL, TO_CLOB(RPAD('x', LEVEL, 'x')) || REPLACE(RPAD('y', 1000, 'y'), 'y', '😀') || REPLACE(RPAD('y', 1000, 'y'), 'y', '😀') || REPLACE(RPAD('y', 1000, 'y'), 'y', '😀') FROM dual CONNECT BY LEVEL <= 4;
COMMIT;
UPDATE l SET c = REPLACE(c, 'x', 'é');
COMMIT;
