-- purpose: transactions that commit, and whose changes cancel each other
-- covers: same-row-many-times
CREATE TABLE n (id NUMBER(4) PRIMARY KEY, v NUMBER(4));
INSERT INTO n VALUES (1, 1);
COMMIT;
INSERT INTO n VALUES (2, 2);
DELETE FROM n WHERE id = 2;
COMMIT;
UPDATE n SET v = v + 1;
UPDATE n SET v = v - 1;
COMMIT;
DELETE FROM n;
INSERT INTO n VALUES (1, 1);
COMMIT;
UPDATE n SET v = 5 WHERE id = 99;
COMMIT;
INSERT INTO n VALUES (3, 3);
COMMIT;
