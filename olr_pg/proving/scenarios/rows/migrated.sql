-- purpose: rows that grow too large for their block move to another block, and keep their ROWID
-- covers: migrated
-- same: no, it looks at ROWIDs
CREATE TABLE m (id NUMBER(4) PRIMARY KEY, v VARCHAR2(3000));
INSERT INTO m SELECT LEVEL, 'small' FROM dual CONNECT BY LEVEL <= 40;
COMMIT;
UPDATE m SET v = RPAD('large', 1500, 'x') WHERE MOD(id, 2) = 0;
COMMIT;
UPDATE m SET v = v || 'y' WHERE MOD(id, 4) = 0;
COMMIT;
UPDATE m SET v = 'small again' WHERE MOD(id, 8) = 0;
COMMIT;
DELETE FROM m WHERE MOD(id, 6) = 0;
COMMIT;
INSERT INTO m SELECT id + 100, v FROM m;
COMMIT;
