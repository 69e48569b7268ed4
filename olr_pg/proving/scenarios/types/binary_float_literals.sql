-- purpose: numbers with the suffix F or D are binary floats, up to the limits of their types
-- covers: extremes
-- same: no, PostgreSQL knows no suffix
CREATE TABLE b (id NUMBER(4) PRIMARY KEY, s BINARY_FLOAT, d BINARY_DOUBLE);
INSERT INTO b VALUES (1, 1.5f, 1.5D);
INSERT INTO b VALUES (2, 3.4E+38F, 1.7E+308D);
INSERT INTO b VALUES (3, -3.4e38f, -1.7e308d);
INSERT INTO b VALUES (4, 1.5E-45F, .5D);
INSERT INTO b (id, s, d) SELECT 5, 2F, 3.5e-3d FROM dual;
COMMIT;
UPDATE b SET d = d / 2d, s = -0.25F WHERE d > 1D;
COMMIT;
