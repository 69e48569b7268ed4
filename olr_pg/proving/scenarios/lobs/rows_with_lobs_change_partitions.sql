-- purpose: rows with LOBs move to other partitions, and a movement is undone
-- covers: partition-moves lob-out-of-row
-- same: no, PostgreSQL has no LOB storage
CREATE TABLE pl (id NUMBER(6) PRIMARY KEY, p NUMBER(4), c CLOB, v VARCHAR2(10)) PARTITION BY LIST (p) (PARTITION p1 VALUES (1), PARTITION p2 VALUES (2), PARTITION pd VALUES (DEFAULT)) ENABLE ROW MOVEMENT;
INSERT INTO pl VALUES (1, 1, RPAD('a', 3000, 'b'), 'x');
INSERT INTO pl VALUES (2, 2, 'small', 'y');
INSERT INTO pl VALUES (3, NULL, NULL, 'z');
COMMIT;
-- start
UPDATE pl SET p = 2 WHERE id = 1;
COMMIT;
UPDATE pl SET p = NULL WHERE id = 2;
UPDATE pl SET v = 'w' WHERE id = 2;
COMMIT;
UPDATE pl SET p = 1, id = 33 WHERE id = 3;
COMMIT;
SAVEPOINT s;
UPDATE pl SET p = 1;
ROLLBACK TO s;
UPDATE pl SET v = 'end';
COMMIT;
