-- purpose: array binds of UPDATE and DELETE: one statement for each row, one transaction
-- covers: array-binds
CREATE TABLE a (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO a SELECT LEVEL, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
-- binds: ["one", 1]
-- binds: ["two", 2]
-- binds: [null, 3]
-- binds: ["nobody", 99]
UPDATE a SET v = :1 WHERE id = :2;
-- binds: [4]
-- binds: [5]
DELETE FROM a WHERE id = :1;
COMMIT;
