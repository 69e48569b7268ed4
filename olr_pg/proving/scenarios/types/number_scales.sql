-- purpose: rounding to a scale, scales above the precision, and negative ones
-- covers: extremes
CREATE TABLE n (id NUMBER(4) PRIMARY KEY, cents NUMBER(10,2), hundreds NUMBER(5,-2), tiny NUMBER(3,5), whole NUMBER(38));
INSERT INTO n VALUES (1, 1.005, 12345, 0.00123, 1);
INSERT INTO n VALUES (2, -1.005, -12350, -0.00999, -1);
INSERT INTO n VALUES (3, 99999999.99, 9999949, 0.009994, 12345678901234567890123456789012345678);
COMMIT;
-- error: ORA-01438
INSERT INTO n VALUES (4, 99999999.999, 0, 0, 0);
-- error: ORA-01438
INSERT INTO n VALUES (4, 0, 0, 0.01, 0);
UPDATE n SET cents = cents / 3, hundreds = hundreds + 49;
COMMIT;
