-- purpose: one row with every scalar type; each column changes separately, then all together
-- covers: extremes
-- same: no, NVARCHAR2 and time zones
CREATE TABLE a (id NUMBER(9) PRIMARY KEY, n NUMBER, p NUMBER(12,4), f FLOAT, bf BINARY_FLOAT, bd BINARY_DOUBLE, v VARCHAR2(40), nv NVARCHAR2(40), c CHAR(8), nc NCHAR(8), r RAW(16), d DATE, t TIMESTAMP(6), tz TIMESTAMP(3) WITH TIME ZONE, ym INTERVAL YEAR(3) TO MONTH, ds INTERVAL DAY(3) TO SECOND(6));
INSERT INTO a VALUES (1, 1.5, 12345.6789, 2.5, 0.5, 0.25, 'text', N'ñ', 'char', N'nc', HEXTORAW('00FF'), DATE '2024-02-29', TIMESTAMP '2024-02-29 01:02:03.456789', TIMESTAMP '2024-02-29 01:02:03.456 +01:00', INTERVAL '1-2' YEAR TO MONTH, INTERVAL '1 02:03:04.5' DAY TO SECOND);
INSERT INTO a (id) VALUES (2);
COMMIT;
UPDATE a SET n = n + 1;
UPDATE a SET p = -p;
UPDATE a SET f = f * 2;
UPDATE a SET bf = bf * 2, bd = bd / 3;
UPDATE a SET v = v || '!', nv = nv || N'ü';
UPDATE a SET c = 'other', nc = N'Ω';
UPDATE a SET r = HEXTORAW('FF00');
UPDATE a SET d = d + 1, t = t + INTERVAL '1' SECOND;
UPDATE a SET tz = tz + INTERVAL '1' HOUR;
UPDATE a SET ym = ym + INTERVAL '1' MONTH, ds = ds + INTERVAL '1' SECOND;
COMMIT;
UPDATE a SET n = 0, p = 0, f = 0, v = 'x', c = 'x', r = HEXTORAW('00'), d = DATE '2000-01-01', t = TIMESTAMP '2000-01-01 00:00:00' WHERE id = 2;
COMMIT;
UPDATE a SET n = NULL, p = NULL, f = NULL, bf = NULL, bd = NULL, v = NULL, nv = NULL, c = NULL, nc = NULL, r = NULL, d = NULL, t = NULL, tz = NULL, ym = NULL, ds = NULL WHERE id = 1;
COMMIT;
