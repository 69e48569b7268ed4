-- purpose: MERGE updates and inserts rows in one statement
-- covers: merge
CREATE TABLE stock (id NUMBER(4) PRIMARY KEY, name VARCHAR2(20), n NUMBER(6));
INSERT INTO stock SELECT LEVEL, 'thing ' || LEVEL, LEVEL * 10 FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
MERGE INTO stock USING (SELECT LEVEL + 3 AS k, LEVEL AS more FROM dual CONNECT BY LEVEL <= 4) d ON (stock.id = d.k) WHEN MATCHED THEN UPDATE SET n = stock.n + d.more WHEN NOT MATCHED THEN INSERT (id, name, n) VALUES (d.k, 'new', d.more);
COMMIT;
MERGE INTO stock USING (SELECT id AS k FROM stock WHERE n > 20) d ON (stock.id = d.k) WHEN MATCHED THEN UPDATE SET name = UPPER(name);
COMMIT;
