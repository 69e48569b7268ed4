-- purpose: DDL fails while another session has changed the table, and succeeds after that session has ended its transaction
-- covers: ddl-while-open, add-column
-- same: no, PostgreSQL waits
CREATE TABLE o (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO o VALUES (1, 'x');
COMMIT;
-- start
UPDATE o SET v = 'open';
-- session: B
-- error: ORA-00054
ALTER TABLE o ADD (n NUMBER(4));
-- error: ORA-00054
TRUNCATE TABLE o;
-- session: A
COMMIT;
-- session: B
ALTER TABLE o ADD (n NUMBER(4));
UPDATE o SET n = 1;
COMMIT;
