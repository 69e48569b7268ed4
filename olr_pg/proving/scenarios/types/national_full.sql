-- purpose: NVARCHAR2 of 2,000 and NCHAR of 1,000 characters, which take two bytes or four each
-- covers: character-sets, lengths
-- same: no, NCHAR counts UTF-16 units
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v NVARCHAR2(2000), c NCHAR(1000));
INSERT INTO t VALUES (1, RPAD(N'ż', 2000, N'ó'), N'x');
INSERT INTO t VALUES (2, N'x', RPAD(N'日', 1000, N'本'));
INSERT INTO t VALUES (3, N'😀', NULL);
COMMIT;
UPDATE t SET v = v || N'!' WHERE id > 1;
COMMIT;
DELETE FROM t WHERE id = 1;
COMMIT;
