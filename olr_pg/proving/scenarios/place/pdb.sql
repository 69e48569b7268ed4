-- purpose: the tables are in a PDB: its redo is mixed with that of the root and of other PDBs
-- others: object numbers occur in several PDBs; tools that use only the number mix tables
-- covers: pdbs
-- needs: pdb
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20), c CLOB);
INSERT INTO t SELECT LEVEL, 'start', 'c' FROM dual CONNECT BY LEVEL <= 6;
COMMIT;
-- start
UPDATE t SET v = 'A', c = RPAD('c', 4000, 'x') WHERE id < 3;
-- session: B
INSERT INTO t VALUES (10, 'B', NULL);
COMMIT;
-- session: A
SAVEPOINT one;
DELETE FROM t WHERE id > 4;
ROLLBACK TO one;
COMMIT;
ALTER TABLE t ADD (n NUMBER(4));
UPDATE t SET n = id;
COMMIT;
