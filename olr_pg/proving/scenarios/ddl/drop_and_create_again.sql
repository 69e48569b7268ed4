-- purpose: a table is dropped, and created again with the same name and other columns
-- others: it is another object with the same name; tools that use the name decode it with the old columns
-- covers: drop-table
-- stops: D OLR-03071
CREATE TABLE d (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
CREATE TABLE kept (id NUMBER(4) PRIMARY KEY);
INSERT INTO d VALUES (1, 'old');
COMMIT;
-- start
UPDATE d SET v = 'changed';
INSERT INTO kept VALUES (1);
COMMIT;
DROP TABLE d;
CREATE TABLE d (name VARCHAR2(30), id NUMBER(4) PRIMARY KEY);
INSERT INTO d VALUES ('new', 1);
INSERT INTO kept VALUES (2);
COMMIT;
