-- purpose: rows move between list partitions, forwards and back, in one transaction and in several
-- others: a move is a deletion and an insertion with another ROWID; tools that use the ROWID lose the row
-- covers: partitions-list, partition-moves
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, state VARCHAR2(10), v VARCHAR2(20)) PARTITION BY LIST (state) (PARTITION open VALUES ('open'), PARTITION closed VALUES ('closed'), PARTITION other VALUES (DEFAULT)) ENABLE ROW MOVEMENT;
INSERT INTO p SELECT LEVEL, 'open', 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
-- start
UPDATE p SET state = 'closed' WHERE id < 5;
COMMIT;
UPDATE p SET state = 'open' WHERE id = 1;
UPDATE p SET v = v || '!' WHERE id < 3;
UPDATE p SET state = 'lost', v = 'moved' WHERE id = 1;
COMMIT;
UPDATE p SET state = NULL;
ROLLBACK;
DELETE FROM p WHERE state = 'closed';
COMMIT;
