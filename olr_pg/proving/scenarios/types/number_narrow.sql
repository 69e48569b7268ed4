-- purpose: NUMBER(1) to NUMBER(4) with their largest values, as many databases use for flags and states
-- covers: extremes
CREATE TABLE n (id NUMBER(2) PRIMARY KEY, flag NUMBER(1), two NUMBER(2), three NUMBER(3), four NUMBER(4,2));
INSERT INTO n VALUES (1, 0, 0, 0, 0);
INSERT INTO n VALUES (2, 9, 99, 999, 99.99);
INSERT INTO n VALUES (3, -9, -99, -999, -99.99);
COMMIT;
UPDATE n SET flag = 1 - flag WHERE id = 1;
-- error: ORA-01438
UPDATE n SET flag = 10;
UPDATE n SET four = four / 3;
COMMIT;
