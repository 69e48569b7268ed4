-- purpose: a table in an encrypted tablespace, whose redo is encrypted: olr_pg must refuse it, with its name
-- others: some tools deliver nothing of it, without an error
-- covers: encryption
-- needs: encryption
CREATE TABLE e (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20)) TABLESPACE OLR_PROVE_ENCRYPTED;
CREATE TABLE plain (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20));
-- start
INSERT INTO e VALUES (1, 'secret');
INSERT INTO plain VALUES (1, 'open');
COMMIT;
UPDATE e SET v = 'changed';
UPDATE plain SET v = 'changed';
COMMIT;
