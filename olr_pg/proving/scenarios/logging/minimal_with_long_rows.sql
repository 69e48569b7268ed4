-- purpose: minimal supplemental logging of rows in several pieces
-- covers: logging-minimal, chained
-- stops: L OLR-05009
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, a VARCHAR2(4000), b VARCHAR2(4000), n NUMBER(4), SUPPLEMENTAL LOG DATA (ALL) COLUMNS);
INSERT INTO l VALUES (1, RPAD('a', 4000, 'a'), RPAD('b', 4000, 'b'), 1);
INSERT INTO l VALUES (2, 'a', 'b', 2);
COMMIT;
ALTER TABLE l DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS;
-- start
UPDATE l SET n = n + 1;
COMMIT;
INSERT INTO l VALUES (3, RPAD('a', 4000, 'c'), RPAD('b', 4000, 'd'), 1);
DELETE FROM l WHERE id = 2;
COMMIT;
