-- purpose: columns become longer and wider, but the target's type can still store them
-- covers: modify-column
CREATE TABLE m (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10), n NUMBER(4));
INSERT INTO m SELECT LEVEL, 'short', LEVEL FROM dual CONNECT BY LEVEL <= 4;
COMMIT;
-- start
-- error: ORA-12899
UPDATE m SET v = 'too long for it';
ALTER TABLE m MODIFY (v VARCHAR2(100));
UPDATE m SET v = 'long enough now for this' WHERE id < 3;
COMMIT;
ALTER TABLE m MODIFY n NUMBER(8);
UPDATE m SET n = 12345678 WHERE id = 1;
INSERT INTO m VALUES (9, RPAD('x', 100, 'x'), 9);
COMMIT;
