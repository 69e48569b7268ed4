-- purpose: LONG and LONG RAW, the oldest large types
-- others: LogMiner gives no value of them
-- covers: lengths
-- needs: long
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, v LONG);
CREATE TABLE lr (id NUMBER(4) PRIMARY KEY, v LONG RAW);
INSERT INTO l VALUES (1, 'short');
INSERT INTO l VALUES (2, RPAD('x', 4000, 'y'));
INSERT INTO lr VALUES (1, HEXTORAW('00FF'));
COMMIT;
UPDATE l SET v = 'other' WHERE id = 2;
UPDATE lr SET v = NULL;
COMMIT;
