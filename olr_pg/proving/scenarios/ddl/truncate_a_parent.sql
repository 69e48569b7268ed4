-- purpose: a parent is truncated while its foreign key is disabled
-- others: TRUNCATE fails in a target that has the foreign key
-- covers: truncate ddl-other
-- same: no, PostgreSQL disables no key
CREATE TABLE par (id NUMBER(6) PRIMARY KEY, v VARCHAR2(10));
CREATE TABLE chi (id NUMBER(6) PRIMARY KEY, par_id NUMBER(6), CONSTRAINT chi_fk FOREIGN KEY (par_id) REFERENCES par (id));
INSERT INTO par VALUES (1, 'a');
INSERT INTO chi VALUES (1, 1);
COMMIT;
-- start
DELETE FROM chi;
COMMIT;
ALTER TABLE chi DISABLE CONSTRAINT chi_fk;
TRUNCATE TABLE par;
INSERT INTO par VALUES (1, 'b');
COMMIT;
ALTER TABLE chi ENABLE CONSTRAINT chi_fk;
INSERT INTO chi VALUES (2, 1);
COMMIT;
