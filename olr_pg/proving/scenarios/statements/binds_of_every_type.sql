-- purpose: values from bind variables and from literals are stored in the same way
-- covers: array-binds
CREATE TABLE b (id NUMBER(6) PRIMARY KEY, n NUMBER, v VARCHAR2(40), c CHAR(5), f BINARY_DOUBLE);
-- start
-- binds: [1, 1.25, "ñ", "x", 0.1]
INSERT INTO b VALUES (:1, :2, :3, :4, :5);
INSERT INTO b VALUES (2, 1.25, 'ñ', 'x', 0.1);
COMMIT;
-- binds: [12345678901234, 1]
UPDATE b SET n = :1 WHERE id = :2;
UPDATE b SET n = 12345678901234 WHERE id = 2;
COMMIT;
