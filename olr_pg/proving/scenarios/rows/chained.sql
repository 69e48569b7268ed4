-- purpose: rows that are longer than a block are stored in several pieces, with one value split in two
-- covers: chained
CREATE TABLE c (id NUMBER(4) PRIMARY KEY, a VARCHAR2(4000), b VARCHAR2(4000), d VARCHAR2(4000), e NUMBER(4));
INSERT INTO c VALUES (1, RPAD('a', 4000, 'A'), RPAD('b', 4000, 'B'), RPAD('d', 4000, 'D'), 1);
INSERT INTO c VALUES (2, RPAD('a', 3000, 'A'), NULL, RPAD('d', 4000, 'D'), 2);
INSERT INTO c VALUES (3, 'short', 'short', 'short', 3);
COMMIT;
UPDATE c SET e = e + 10;
COMMIT;
DELETE FROM c WHERE id = 1;
COMMIT;
INSERT INTO c SELECT id + 10, d, a, b, e FROM c;
COMMIT;
DELETE FROM c;
ROLLBACK;
DELETE FROM c;
COMMIT;
