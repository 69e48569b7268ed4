-- purpose: INSERT from a query of the same table reads only the rows from before the statement
-- covers: multi-row
CREATE TABLE s (id NUMBER(6) PRIMARY KEY, v VARCHAR2(60));
INSERT INTO s VALUES (1, 'x');
COMMIT;
INSERT INTO s SELECT id + 1, v || 'a' FROM s;
INSERT INTO s SELECT id + 2, v || 'b' FROM s;
INSERT INTO s SELECT id + 4, v || 'c' FROM s;
INSERT INTO s SELECT id + 8, v || 'd' FROM s;
COMMIT;
DELETE FROM s WHERE id IN (SELECT id + 1 FROM s);
COMMIT;
