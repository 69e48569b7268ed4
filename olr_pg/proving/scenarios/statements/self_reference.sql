-- purpose: a foreign key to the same table: a tree is filled, changed and deleted
-- others: appliers that sort changes by table instead of time apply children before parents
-- covers: multi-row
CREATE TABLE tree (id NUMBER(4) PRIMARY KEY, parent NUMBER(4) REFERENCES tree, v VARCHAR2(10));
INSERT INTO tree VALUES (1, NULL, 'root');
INSERT INTO tree SELECT 1 + LEVEL, 1, 'child' FROM dual CONNECT BY LEVEL <= 3;
INSERT INTO tree SELECT 10 + LEVEL, 2, 'leaf' FROM dual CONNECT BY LEVEL <= 3;
COMMIT;
UPDATE tree SET parent = 3 WHERE parent = 2;
DELETE FROM tree WHERE id = 2;
COMMIT;
-- error: ORA-02292
DELETE FROM tree WHERE id = 3;
DELETE FROM tree WHERE id > 10;
DELETE FROM tree WHERE id = 3;
COMMIT;
