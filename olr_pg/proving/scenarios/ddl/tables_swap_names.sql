-- purpose: a new table replaces an old one, by renaming both, as in a rebuild
-- covers: rename-table
-- stops: T OLR-03071
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
CREATE TABLE t_new (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO t VALUES (1, 'old');
INSERT INTO t_new VALUES (1, 'new');
COMMIT;
-- start
UPDATE t SET v = 'before';
COMMIT;
ALTER TABLE t RENAME TO t_old;
ALTER TABLE t_new RENAME TO t;
UPDATE t SET v = 'after';
COMMIT;
