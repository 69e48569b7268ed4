-- purpose: a column becomes NOT NULL, and later allows NULL again
-- covers: modify-column
CREATE TABLE m (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO m VALUES (1, 'x');
COMMIT;
-- start
ALTER TABLE m MODIFY (v NOT NULL);
-- error: ORA-01400 or ORA-01407
UPDATE m SET v = NULL;
UPDATE m SET v = 'y';
COMMIT;
ALTER TABLE m MODIFY (v NULL);
UPDATE m SET v = NULL;
COMMIT;
