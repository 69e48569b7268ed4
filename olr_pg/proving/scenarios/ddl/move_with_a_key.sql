-- purpose: MOVE of a table with a primary key, whose index is rebuilt afterwards
-- covers: move
-- same: no, PostgreSQL has no MOVE
CREATE TABLE m (id NUMBER(4), v VARCHAR2(100), CONSTRAINT m_pk PRIMARY KEY (id));
INSERT INTO m SELECT LEVEL, 'v' || LEVEL FROM dual CONNECT BY LEVEL <= 50;
COMMIT;
-- start
UPDATE m SET v = 'before' WHERE id < 10;
COMMIT;
ALTER TABLE m MOVE;
ALTER INDEX m_pk REBUILD;
UPDATE m SET v = 'after' WHERE id > 40;
DELETE FROM m WHERE id = 1;
COMMIT;
