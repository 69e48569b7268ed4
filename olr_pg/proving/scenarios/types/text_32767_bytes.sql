-- purpose: VARCHAR2 and RAW of 32,767 bytes, which Oracle stores as LOBs of its own
-- others: tools that do not know these hidden LOBs deliver an empty text
-- covers: lengths
-- needs: extended
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(32767), r RAW(32767));
INSERT INTO t VALUES (1, 'short', HEXTORAW('00FF'));
INSERT INTO t VALUES (2, RPAD('x', 4000, 'x'), NULL);
INSERT INTO t VALUES (3, RPAD('x', 4001, 'x'), NULL);
INSERT INTO t VALUES (4, RPAD('y', 32767, 'y'), NULL);
COMMIT;
UPDATE t SET v = RPAD('z', 32767, 'z') WHERE id = 1;
UPDATE t SET v = 'short now' WHERE id = 4;
COMMIT;
UPDATE t SET v = NULL WHERE id = 3;
DELETE FROM t WHERE id = 2;
COMMIT;
