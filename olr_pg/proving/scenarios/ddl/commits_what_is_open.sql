-- purpose: DDL commits the open transaction of its own session, but not that of another session
-- covers: ddl-while-open
CREATE TABLE c (id NUMBER(4) PRIMARY KEY);
CREATE TABLE d (id NUMBER(4) PRIMARY KEY);
INSERT INTO c VALUES (1);
COMMIT;
-- start
INSERT INTO c VALUES (2);
-- session: B
INSERT INTO c VALUES (3);
-- session: A
ALTER TABLE d ADD (v NUMBER(4));
ROLLBACK;
-- session: B
ROLLBACK;
-- session: A
-- error: ORA-00942
SELECT * FROM nothing;
INSERT INTO d VALUES (1, 2);
COMMIT;
