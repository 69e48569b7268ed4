-- purpose: VARCHAR2 keeps trailing spaces, and a text of only spaces is not NULL
-- others: tools that trim CHAR values also trim these
-- covers: padding
CREATE TABLE v (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20), w VARCHAR2(20));
INSERT INTO v VALUES (1, 'x ', 'x');
INSERT INTO v VALUES (2, '   ', ' x');
INSERT INTO v VALUES (3, ' ', NULL);
COMMIT;
UPDATE v SET w = v || ' ' WHERE id < 3;
COMMIT;
UPDATE v SET v = RTRIM(v) WHERE id = 1;
COMMIT;
