-- purpose: two rows swap their keys in one statement, which is valid only at its end
-- others: appliers that replay row by row violate the key in between
-- covers: key-swaps
CREATE TABLE swaps (id NUMBER(6) PRIMARY KEY, word VARCHAR2(20));
-- start
INSERT INTO swaps VALUES (1, 'one');
INSERT INTO swaps VALUES (2, 'two');
COMMIT;
UPDATE swaps SET id = 3 - id;
COMMIT;
UPDATE swaps SET id = id + 1;
COMMIT;
-- session: B
-- error: ORA-00001
INSERT INTO swaps VALUES (2, 'again');
SAVEPOINT one;
DELETE FROM swaps WHERE id = 2;
-- session: A
UPDATE swaps SET word = 'A' WHERE id = 2;
-- session: B
ROLLBACK TO one;
-- session: A
COMMIT;
