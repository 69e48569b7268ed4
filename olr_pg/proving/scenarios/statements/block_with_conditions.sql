-- purpose: a PL/SQL block with IF, loops over a query and exception handlers
-- covers: multi-row, fail-halfway
-- same: no, handlers of PostgreSQL undo the whole block
CREATE TABLE a (id NUMBER(4) PRIMARY KEY, v NUMBER(6));
CREATE TABLE b (id NUMBER(4) PRIMARY KEY, v NUMBER(6));
INSERT INTO a SELECT LEVEL, LEVEL * 10 FROM dual CONNECT BY LEVEL <= 8;
INSERT INTO b VALUES (3, 0);
COMMIT;
BEGIN
  FOR r IN (SELECT id, v FROM a ORDER BY id) LOOP
    IF MOD(r.id, 2) = 0 THEN
      UPDATE a SET v = r.v + 1 WHERE id = r.id;
    ELSIF r.id > 6 THEN
      DELETE FROM a WHERE id = r.id;
    ELSE
      BEGIN
        INSERT INTO b VALUES (r.id, r.v);
      EXCEPTION
        WHEN DUP_VAL_ON_INDEX THEN
          UPDATE b SET v = r.v WHERE id = r.id;
      END;
    END IF;
  END LOOP;
END;
/
COMMIT;
