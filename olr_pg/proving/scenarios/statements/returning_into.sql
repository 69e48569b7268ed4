-- purpose: INSERT, UPDATE and DELETE with RETURNING INTO; the returned values are inserted into another table
-- covers: returning
CREATE TABLE r (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20), n NUMBER(6));
CREATE TABLE journal (no NUMBER(4) PRIMARY KEY, what VARCHAR2(40));
INSERT INTO r SELECT LEVEL, 'v' || LEVEL, LEVEL FROM dual CONNECT BY LEVEL <= 5;
COMMIT;
DECLARE
  x NUMBER;
  y VARCHAR2(20);
BEGIN
  INSERT INTO r VALUES (10, 'new', 100) RETURNING n + 1 INTO x;
  INSERT INTO journal VALUES (1, 'inserted ' || x);
  UPDATE r SET n = n * 2, v = v || '!' WHERE id = 3 RETURNING n, v INTO x, y;
  INSERT INTO journal VALUES (2, y || ' ' || x);
  DELETE FROM r WHERE id = 4 RETURNING v INTO y;
  INSERT INTO journal VALUES (3, 'deleted ' || y);
END;
/
COMMIT;
