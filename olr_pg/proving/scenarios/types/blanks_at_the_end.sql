-- purpose: VARCHAR2 keeps the blanks at its end, and a text of blanks alone is not NULL
-- others: tools that trim texts for CHAR's sake trim these, too
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
