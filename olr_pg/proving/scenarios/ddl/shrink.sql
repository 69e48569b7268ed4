-- purpose: SHRINK moves rows to other blocks, with internal deletions and insertions
-- others: tools that do not recognise these deliver them as changes
-- covers: move
-- needs: shrink
-- same: no, it is of Oracle
CREATE TABLE s (id NUMBER(6) PRIMARY KEY, v VARCHAR2(200)) ENABLE ROW MOVEMENT;
INSERT INTO s SELECT LEVEL, RPAD('v', 150, 'x') FROM dual CONNECT BY LEVEL <= 1000;
COMMIT;
-- start
DELETE FROM s WHERE MOD(id, 3) > 0;
COMMIT;
ALTER TABLE s SHRINK SPACE;
UPDATE s SET v = 'after' WHERE id < 100;
COMMIT;
