-- purpose: an array with one row that fails: the rows before it stay
-- others: tools that treat the redo record of the array as a whole deliver all rows or none
-- covers: array-binds, fail-halfway
-- same: no, PostgreSQL's arrays fail as a whole
CREATE TABLE a (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO a VALUES (3, 'there');
COMMIT;
-- error: ORA-00001
-- binds: [1, "first"]
-- binds: [2, "second"]
-- binds: [3, "fails"]
-- binds: [4, "never"]
INSERT INTO a VALUES (:1, :2);
COMMIT;
UPDATE a SET v = v || '!';
COMMIT;
