-- purpose: LOBs in rows of several pieces: the locator and the other columns are in different blocks
-- covers: lob-in-row, chained
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, a VARCHAR2(4000), c CLOB, b VARCHAR2(4000), d CLOB);
INSERT INTO l VALUES (1, RPAD('a', 4000, 'a'), RPAD('c', 1500, 'c'), RPAD('b', 4000, 'b'), 'small');
INSERT INTO l VALUES (2, 'a', RPAD('c', 4000, 'c'), 'b', RPAD('d', 4000, 'd'));
COMMIT;
UPDATE l SET d = RPAD('d', 1500, 'D'), b = 'short';
COMMIT;
UPDATE l SET a = RPAD('a', 4000, 'z') WHERE id = 2;
COMMIT;
DELETE FROM l WHERE id = 1;
COMMIT;
