-- purpose: updates make rows longer than a block, column by column, and short again
-- others: the pieces are not in order; tools that expect the first piece first lose columns
-- covers: chained
CREATE TABLE c (id NUMBER(4) PRIMARY KEY, a VARCHAR2(4000), b VARCHAR2(4000), d VARCHAR2(4000), e NUMBER(4));
INSERT INTO c SELECT LEVEL, 'a', 'b', 'd', LEVEL FROM dual CONNECT BY LEVEL <= 4;
COMMIT;
UPDATE c SET a = RPAD('a', 4000, 'A') WHERE id < 3;
COMMIT;
UPDATE c SET b = RPAD('b', 4000, 'B') WHERE id < 3;
UPDATE c SET d = RPAD('d', 4000, 'D') WHERE id = 1;
COMMIT;
UPDATE c SET e = -e, b = 'short';
COMMIT;
UPDATE c SET a = NULL, d = NULL;
COMMIT;
DELETE FROM c WHERE id < 3;
COMMIT;
