-- purpose: the open transaction of a session that ends is rolled back
-- covers: rolled-back
CREATE TABLE o (id NUMBER(4) PRIMARY KEY);
INSERT INTO o VALUES (1);
COMMIT;
-- start
INSERT INTO o VALUES (2);
COMMIT;
-- session: B
INSERT INTO o VALUES (3);
-- session: A
DELETE FROM o WHERE id = 1;
