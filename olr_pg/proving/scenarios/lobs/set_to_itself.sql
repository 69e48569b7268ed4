-- purpose: LOBs set to themselves and copied from other rows
-- covers: lob-out-of-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB, d CLOB);
INSERT INTO l VALUES (1, RPAD('one', 4000, 'x'), 'small');
INSERT INTO l VALUES (2, 'two', RPAD('long', 4000, 'y'));
COMMIT;
UPDATE l SET c = c, d = d;
COMMIT;
UPDATE l SET c = d, d = c;
COMMIT;
INSERT INTO l SELECT id + 10, d, c FROM l;
COMMIT;
