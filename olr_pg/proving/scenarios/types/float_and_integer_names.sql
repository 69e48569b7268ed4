-- purpose: ANSI names of numeric types, which the dictionary shows as NUMBER without a scale or with scale 0
-- covers: extremes
CREATE TABLE f (id INTEGER PRIMARY KEY, s SMALLINT, d DECIMAL(8,3), n NUMERIC(6), fl FLOAT, fl10 FLOAT(10));
INSERT INTO f VALUES (1, 2.5, 12345.6785, 1.5, 3.14159265358979, 2.5);
INSERT INTO f VALUES (2, -2.5, -12345.6785, -1.5, -1e20, 1e10);
COMMIT;
UPDATE f SET fl = fl * 2, s = s + 1;
COMMIT;
