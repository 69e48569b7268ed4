-- purpose: statements that violate a key have written rows and LOBs before they fail
-- others: tools send rows that a failed statement has inserted
-- covers: fail-halfway lob-rolled-back
-- same: no, an INSERT fails at another row
CREATE TABLE cn (id NUMBER(6) PRIMARY KEY, data VARCHAR2(20), c CLOB);
-- start
INSERT INTO cn VALUES (1, 'Test', 'x');
-- error: ORA-00001
INSERT INTO cn VALUES (1, 'Test', RPAD('y', 3000, 'y'));
-- error: ORA-00001
INSERT INTO cn VALUES (1, 'Test', 'z');
COMMIT;
INSERT INTO cn VALUES (2, 'b', 'x');
-- error: ORA-00001
UPDATE cn SET id = 1;
-- error: ORA-00001
INSERT INTO cn SELECT id + 1, data, c FROM cn;
UPDATE cn SET data = 'last', c = RPAD('q', 2500, 'q') WHERE id = 2;
COMMIT;
