-- purpose: an update that would move a row to another partition fails without ENABLE ROW MOVEMENT, and succeeds with it
-- covers: partition-moves, fail-halfway
-- same: no, PostgreSQL always moves rows
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, n NUMBER(6)) PARTITION BY RANGE (n) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN (20));
INSERT INTO p VALUES (1, 1);
INSERT INTO p VALUES (2, 12);
COMMIT;
-- start
-- error: ORA-14402
UPDATE p SET n = n + 9 WHERE id = 1;
UPDATE p SET n = n + 7;
COMMIT;
ALTER TABLE p ENABLE ROW MOVEMENT;
UPDATE p SET n = 15 WHERE id = 1;
COMMIT;
