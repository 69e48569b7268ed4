-- purpose: a transaction writes LOBs in three logs
-- covers: several-in-one-transaction, lob-out-of-row
CREATE TABLE l (id NUMBER(4) PRIMARY KEY, c CLOB);
INSERT INTO l VALUES (1, 'start');
COMMIT;
-- start
INSERT INTO l VALUES (2, RPAD('two', 4000, 'x'));
ALTER SYSTEM SWITCH LOGFILE;
UPDATE l SET c = RPAD('one', 4000, 'x') WHERE id = 1;
ALTER SYSTEM SWITCH LOGFILE;
UPDATE l SET c = c || c WHERE id = 2;
COMMIT;
ALTER SYSTEM SWITCH LOGFILE;
