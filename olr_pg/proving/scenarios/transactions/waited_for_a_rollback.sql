-- purpose: a session waits for a row until another session rolls back, and then changes it
-- covers: interleaved
-- same: no, it needs two sessions
CREATE TABLE w (id NUMBER(4) PRIMARY KEY, v NUMBER(6));
INSERT INTO w SELECT LEVEL, 0 FROM dual CONNECT BY LEVEL <= 3;
COMMIT;
-- start
UPDATE w SET v = 100;
-- session: B
UPDATE w SET v = v + 1;
-- session: A
ROLLBACK;
-- session: B
COMMIT;
