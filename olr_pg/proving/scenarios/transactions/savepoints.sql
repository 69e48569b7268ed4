-- purpose: changes after a savepoint are rolled back; those before the savepoint and after the rollback stay
-- covers: savepoints
CREATE TABLE s (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO s VALUES (1, 'kept');
SAVEPOINT one;
INSERT INTO s VALUES (2, 'gone');
UPDATE s SET v = 'changed' WHERE id = 1;
SAVEPOINT two;
DELETE FROM s;
ROLLBACK TO two;
INSERT INTO s VALUES (3, 'gone too');
ROLLBACK TO one;
INSERT INTO s VALUES (2, 'another');
COMMIT;
SAVEPOINT one;
UPDATE s SET v = 'x';
ROLLBACK TO SAVEPOINT one;
COMMIT;
DELETE FROM s WHERE id = 1;
COMMIT;
