-- purpose: a table is renamed while another table keeps its name
-- others: tools that use the name lose the table, without an error
-- covers: rename-table
-- stops: OLD_NAME OLR-03071
CREATE TABLE old_name (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
CREATE TABLE kept (id NUMBER(4) PRIMARY KEY);
INSERT INTO old_name VALUES (1, 'x');
COMMIT;
-- start
UPDATE old_name SET v = 'before';
COMMIT;
ALTER TABLE old_name RENAME TO new_name;
UPDATE new_name SET v = 'after';
INSERT INTO kept VALUES (1);
COMMIT;
