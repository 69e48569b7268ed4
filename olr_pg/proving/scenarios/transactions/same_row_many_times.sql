-- purpose: one row changed many times in one transaction, and deleted and inserted again with its key
-- covers: same-row-many-times
CREATE TABLE m (id NUMBER(4) PRIMARY KEY, v NUMBER(6));
INSERT INTO m VALUES (1, 0);
UPDATE m SET v = v + 1;
UPDATE m SET v = v + 1;
UPDATE m SET v = v + 1;
DELETE FROM m;
INSERT INTO m VALUES (1, 10);
UPDATE m SET v = v * 2;
DELETE FROM m;
INSERT INTO m VALUES (1, 30);
COMMIT;
UPDATE m SET id = 2;
UPDATE m SET id = 3;
UPDATE m SET id = 1;
COMMIT;
INSERT INTO m VALUES (2, 0);
DELETE FROM m WHERE id = 2;
COMMIT;
