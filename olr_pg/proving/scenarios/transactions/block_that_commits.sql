-- purpose: a PL/SQL block commits in a loop: each iteration is a transaction
-- covers: interleaved
-- same: no, PostgreSQL's blocks do not commit within a transaction
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v NUMBER(6));
INSERT INTO t VALUES (0, 0);
COMMIT;
BEGIN
  FOR i IN 1..12 LOOP
    INSERT INTO t VALUES (i, i);
    UPDATE t SET v = v + 1 WHERE id = 0;
    IF MOD(i, 4) = 0 THEN
      COMMIT;
    END IF;
  END LOOP;
  DELETE FROM t WHERE id = 12;
END;
/
COMMIT;
