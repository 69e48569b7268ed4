-- purpose: a savepoint that is set again with the same name moves
-- covers: savepoints
-- same: no, PostgreSQL keeps the older one below the newer
CREATE TABLE s (id NUMBER(4) PRIMARY KEY);
SAVEPOINT here;
INSERT INTO s VALUES (1);
SAVEPOINT here;
INSERT INTO s VALUES (2);
ROLLBACK TO here;
COMMIT;
-- error: ORA-01086
ROLLBACK TO here;
INSERT INTO s VALUES (3);
COMMIT;
