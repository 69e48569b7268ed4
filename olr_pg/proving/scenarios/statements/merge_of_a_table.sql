-- purpose: MERGE of a staging table of hundreds of rows, with conditions on both parts
-- covers: merge
-- same: no, PostgreSQL writes the conditions otherwise
CREATE TABLE stage (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20), n NUMBER(6));
CREATE TABLE m (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20), n NUMBER(6));
INSERT INTO m SELECT LEVEL * 2, 'old', LEVEL FROM dual CONNECT BY LEVEL <= 100;
INSERT INTO stage SELECT LEVEL, 'new', LEVEL FROM dual CONNECT BY LEVEL <= 150;
COMMIT;
MERGE INTO m USING stage s ON (m.id = s.id) WHEN MATCHED THEN UPDATE SET m.v = s.v, m.n = m.n + s.n WHERE s.n > 50 WHEN NOT MATCHED THEN INSERT (id, v, n) VALUES (s.id, s.v, s.n) WHERE s.n < 100;
COMMIT;
-- error: ORA-30926
MERGE INTO m USING (SELECT 2 AS id, LEVEL AS n FROM dual CONNECT BY LEVEL <= 2) s ON (m.id = s.id) WHEN MATCHED THEN UPDATE SET m.n = s.n;
DELETE FROM m WHERE v = 'old';
COMMIT;
