-- purpose: DATEs before the year 1
-- covers: extremes
-- same: no, PostgreSQL writes them otherwise
CREATE TABLE d (id NUMBER(4) PRIMARY KEY, v DATE);
INSERT INTO d VALUES (1, DATE '-4712-01-01');
INSERT INTO d VALUES (2, DATE '-0001-12-31');
COMMIT;
UPDATE d SET v = v + 1;
COMMIT;
DELETE FROM d WHERE id = 1;
COMMIT;
