-- purpose: rows that are archived in the database, which queries of other sessions do not return
-- others: tools that load with queries lack these rows; their later changes find no row
-- covers: storage-other
-- needs: row-archival
CREATE TABLE a (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20)) ROW ARCHIVAL;
INSERT INTO a SELECT LEVEL, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 20;
UPDATE a SET ora_archive_state = '1' WHERE id > 15;
COMMIT;
-- start
INSERT INTO a (id, v) VALUES (100, 'new');
INSERT INTO a (id, v, ora_archive_state) VALUES (101, 'archived at once', '1');
COMMIT;
UPDATE a SET ora_archive_state = '1', v = 'both' WHERE id = 1;
UPDATE a SET ora_archive_state = '1' WHERE id BETWEEN 2 AND 5;
COMMIT;
DELETE FROM a WHERE id = 10;
COMMIT;
