-- purpose: NULLs at the start, in the middle and at the end of rows, set and taken away
-- covers: nulls
CREATE TABLE n (a NUMBER(4), b VARCHAR2(5), c NUMBER(4), d VARCHAR2(5), e NUMBER(4), id NUMBER(4) PRIMARY KEY, f VARCHAR2(5), g NUMBER(4));
INSERT INTO n VALUES (NULL, NULL, NULL, NULL, NULL, 1, NULL, NULL);
INSERT INTO n VALUES (1, NULL, 3, NULL, 5, 2, NULL, NULL);
INSERT INTO n VALUES (1, 'b', 3, 'd', 5, 3, 'f', 7);
COMMIT;
UPDATE n SET g = 9 WHERE id = 1;
UPDATE n SET g = NULL, f = NULL WHERE id = 3;
COMMIT;
UPDATE n SET a = c, c = a, b = d, d = b;
COMMIT;
UPDATE n SET a = NULL, b = NULL, c = NULL, d = NULL, e = NULL, f = NULL, g = NULL;
COMMIT;
DELETE FROM n;
COMMIT;
