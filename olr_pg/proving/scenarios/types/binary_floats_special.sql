-- purpose: infinities and NaN of binary floats, and values at the end of their range
-- others: several tools write NaN and infinity as NULL, or fail
-- covers: extremes
CREATE TABLE b (id NUMBER(4) PRIMARY KEY, s BINARY_FLOAT, d BINARY_DOUBLE);
INSERT INTO b VALUES (1, TO_BINARY_FLOAT('Infinity'), TO_BINARY_DOUBLE('Infinity'));
INSERT INTO b VALUES (2, TO_BINARY_FLOAT('-Infinity'), TO_BINARY_DOUBLE('-Infinity'));
INSERT INTO b VALUES (3, TO_BINARY_FLOAT('NaN'), TO_BINARY_DOUBLE('NaN'));
INSERT INTO b VALUES (4, TO_BINARY_FLOAT('3.4E38'), TO_BINARY_DOUBLE('1.7E308'));
INSERT INTO b VALUES (5, TO_BINARY_FLOAT('1.2E-38'), TO_BINARY_DOUBLE('2.3E-308'));
COMMIT;
UPDATE b SET s = NULL WHERE id < 3;
UPDATE b SET d = TO_BINARY_DOUBLE('NaN') WHERE id = 4;
COMMIT;
DELETE FROM b WHERE id IN (1, 3);
COMMIT;
