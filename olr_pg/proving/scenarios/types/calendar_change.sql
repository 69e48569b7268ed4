-- purpose: DATEs before and after October 1582, when Oracle changes from the Julian to the Gregorian calendar
-- others: tools with only one calendar shift the earlier dates by some days
-- covers: extremes
-- same: no, PostgreSQL has one calendar for all
CREATE TABLE d (id NUMBER(4) PRIMARY KEY, v DATE, t TIMESTAMP);
INSERT INTO d VALUES (1, DATE '1582-10-04', TIMESTAMP '1582-10-04 23:59:59.999999');
INSERT INTO d VALUES (2, DATE '1582-10-15', TIMESTAMP '1582-10-15 00:00:00');
INSERT INTO d VALUES (3, DATE '1500-02-28', TIMESTAMP '1000-01-01 12:00:00');
COMMIT;
UPDATE d SET t = TIMESTAMP '0099-12-31 23:59:59' WHERE id = 3;
COMMIT;
DELETE FROM d WHERE id = 1;
COMMIT;
