-- purpose: LOBs that are rolled back, to a savepoint and as a whole, leave nothing
-- covers: lob-rolled-back
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l VALUES (1, RPAD('first', 4000, 'x'));
COMMIT;
UPDATE l SET c = c || RPAD('gone', 4000, 'y');
ROLLBACK;
SAVEPOINT one;
UPDATE l SET c = RPAD('gone', 4000, 'z');
INSERT INTO l VALUES (2, RPAD('gone', 4000, 'z'));
ROLLBACK TO one;
INSERT INTO l VALUES (2, RPAD('kept', 4000, 'k'));
COMMIT;
