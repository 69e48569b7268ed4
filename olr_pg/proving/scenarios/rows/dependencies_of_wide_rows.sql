-- purpose: ROWDEPENDENCIES with rows of several pieces, trailing NULLs and locks
-- others: readers that read this SCN as a column assign all values to wrong columns
-- covers: rowdependencies, chained
CREATE TABLE d (id NUMBER(4) PRIMARY KEY, a VARCHAR2(4000), b VARCHAR2(4000), c VARCHAR2(4000), n NUMBER(4)) ROWDEPENDENCIES;
INSERT INTO d VALUES (1, RPAD('a', 4000, 'a'), RPAD('b', 4000, 'b'), RPAD('c', 4000, 'c'), 1);
INSERT INTO d (id, a) VALUES (2, 'short');
COMMIT;
SELECT * FROM d FOR UPDATE;
UPDATE d SET n = n + 1;
UPDATE d SET a = 'short too' WHERE id = 1;
COMMIT;
DELETE FROM d WHERE id = 1;
COMMIT;
