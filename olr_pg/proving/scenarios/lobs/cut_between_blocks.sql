-- purpose: LOB values in a row that is longer than a block: a locator begins in one piece and ends in the next
-- covers: lob-in-row, chained
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, a CLOB, b CLOB, c CLOB, d CLOB, v NUMBER(4));
INSERT INTO l VALUES (1, RPAD('a', 1900, 'A'), RPAD('b', 1900, 'B'), RPAD('c', 1900, 'C'), 'd', 1);
COMMIT;
-- start
INSERT INTO l VALUES (2, RPAD('a', 1950, 'A'), RPAD('b', 1950, 'B'), RPAD('c', 1950, 'C'), RPAD('d', 1950, 'D'), 2);
INSERT INTO l VALUES (3, RPAD('a', 1700, 'A'), NULL, RPAD('c', 1900, 'C'), RPAD('d', 1950, 'D'), 3);
COMMIT;
UPDATE l SET v = v + 10;
COMMIT;
UPDATE l SET b = RPAD('other', 1940, 'x') WHERE id < 3;
COMMIT;
DELETE FROM l WHERE id = 2;
ROLLBACK;
DELETE FROM l WHERE id = 1;
COMMIT;
