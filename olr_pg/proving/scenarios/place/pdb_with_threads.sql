-- purpose: tables of a PDB change in two redo threads; another PDB has the same object numbers
-- covers: pdbs, redo-threads
-- needs: pdb, rac
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO t SELECT LEVEL, 'start' FROM dual CONNECT BY LEVEL <= 6;
COMMIT;
-- start
UPDATE t SET v = 'A' WHERE id = 1;
-- session: B
UPDATE t SET v = 'B' WHERE id = 2;
COMMIT;
-- session: A
UPDATE t SET v = v || 'A' WHERE id = 2;
COMMIT;
ALTER SYSTEM SWITCH LOGFILE;
-- session: B
DELETE FROM t WHERE id > 4;
COMMIT;
