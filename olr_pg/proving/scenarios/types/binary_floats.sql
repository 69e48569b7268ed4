-- purpose: binary floats stay exactly equal: signs, fractions, tiny and huge exponents
-- covers: extremes
CREATE TABLE b (id NUMBER(4) PRIMARY KEY, s BINARY_FLOAT, d BINARY_DOUBLE);
INSERT INTO b VALUES (1, 0.5, 0.1);
INSERT INTO b VALUES (2, -0.25, TO_BINARY_DOUBLE('-1E300'));
INSERT INTO b VALUES (3, TO_BINARY_FLOAT('3.5'), TO_BINARY_DOUBLE('1E-300'));
INSERT INTO b VALUES (4, 0, 0);
COMMIT;
UPDATE b SET s = s * 2, d = d / 3;
COMMIT;
UPDATE b SET s = NULL WHERE id = 2;
COMMIT;
