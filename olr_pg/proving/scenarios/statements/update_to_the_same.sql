-- purpose: an update that sets the present value: the redo contains a change, but the row stays equal
-- covers: multi-row
CREATE TABLE s (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10), n NUMBER(4));
INSERT INTO s VALUES (1, 'x', 1);
INSERT INTO s VALUES (2, NULL, NULL);
COMMIT;
UPDATE s SET v = v;
COMMIT;
UPDATE s SET n = n, v = v WHERE id = 2;
COMMIT;
UPDATE s SET id = id;
COMMIT;
