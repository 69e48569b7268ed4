-- purpose: MERGE without an update part, twice: the second time it does nothing
-- covers: merge
CREATE TABLE m (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO m VALUES (2, 'there');
COMMIT;
MERGE INTO m USING (SELECT LEVEL AS k FROM dual CONNECT BY LEVEL <= 3) s ON (m.id = s.k) WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.k, 'merged');
COMMIT;
MERGE INTO m USING (SELECT LEVEL AS k FROM dual CONNECT BY LEVEL <= 3) s ON (m.id = s.k) WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.k, 'again');
COMMIT;
INSERT INTO m VALUES (9, 'end');
COMMIT;
