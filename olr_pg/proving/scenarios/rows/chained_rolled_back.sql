-- purpose: changes of rows in several pieces are rolled back, to a savepoint and as a whole
-- covers: chained, rolled-back
CREATE TABLE c (id NUMBER(4) PRIMARY KEY, a VARCHAR2(4000), b VARCHAR2(4000), d VARCHAR2(4000));
INSERT INTO c VALUES (1, RPAD('a', 4000, 'A'), RPAD('b', 4000, 'B'), RPAD('d', 4000, 'D'));
INSERT INTO c VALUES (2, 'short', 'short', 'short');
COMMIT;
UPDATE c SET a = 'x', d = RPAD('x', 4000, 'X');
SAVEPOINT one;
DELETE FROM c;
INSERT INTO c VALUES (3, RPAD('a', 4000, 'A'), RPAD('b', 4000, 'B'), RPAD('d', 4000, 'D'));
ROLLBACK TO one;
UPDATE c SET b = 'kept' WHERE id = 1;
COMMIT;
DELETE FROM c WHERE id = 1;
ROLLBACK;
UPDATE c SET b = RPAD('b', 4000, 'b'), d = RPAD('d', 4000, 'd') WHERE id = 2;
ROLLBACK;
UPDATE c SET a = 'end';
COMMIT;
