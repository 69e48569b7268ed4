-- purpose: partitions by list of values, with NULL and DEFAULT
-- covers: partitions-list
CREATE TABLE p (id NUMBER(6) PRIMARY KEY, region VARCHAR2(10), v NUMBER(6)) PARTITION BY LIST (region) (PARTITION north VALUES ('SE', 'NO', 'FI'), PARTITION none VALUES (NULL), PARTITION rest VALUES (DEFAULT));
INSERT INTO p VALUES (1, 'SE', 1);
INSERT INTO p VALUES (2, NULL, 2);
INSERT INTO p VALUES (3, 'IT', 3);
COMMIT;
-- start
INSERT INTO p VALUES (4, 'NO', 4);
UPDATE p SET v = v * 10;
COMMIT;
DELETE FROM p WHERE region IS NULL;
INSERT INTO p VALUES (5, 'ES', 5);
COMMIT;
