-- purpose: two sessions write LOBs of one table alternately; one of them rolls back
-- others: LOB pages do not contain the row; tools that assign them to the nearest row mix the values
-- covers: several-in-one-transaction, lob-rolled-back
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l SELECT LEVEL, 'start' FROM dual CONNECT BY LEVEL <= 4;
COMMIT;
-- start
UPDATE l SET c = RPAD('A', 4000, 'a') WHERE id = 1;
-- session: B
UPDATE l SET c = RPAD('B', 4000, 'b') WHERE id = 2;
-- session: A
UPDATE l SET c = RPAD('A', 3000, 'a') || RPAD('A', 3000, 'a') WHERE id = 3;
-- session: B
UPDATE l SET c = c || RPAD('B', 4000, 'c') WHERE id = 2;
-- session: A
ROLLBACK;
INSERT INTO l VALUES (5, RPAD('A5', 4000, 'a'));
-- session: B
COMMIT;
-- session: A
COMMIT;
