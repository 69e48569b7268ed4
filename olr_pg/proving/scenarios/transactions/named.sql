-- purpose: a transaction with a name, which its redo contains; its changes are the same
-- covers: interleaved
-- same: no, PostgreSQL has no names of transactions
CREATE TABLE n (id NUMBER(4) PRIMARY KEY);
SET TRANSACTION NAME 'nightly load';
INSERT INTO n VALUES (1);
COMMIT;
INSERT INTO n VALUES (2);
COMMIT;
