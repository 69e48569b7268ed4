-- purpose: a loop that inserts rows and uses the keys that RETURNING gives
-- covers: returning
CREATE TABLE p (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20));
CREATE TABLE c (id NUMBER(4) PRIMARY KEY, p NUMBER(4) REFERENCES p);
INSERT INTO p VALUES (100, 'there');
COMMIT;
DECLARE
  k NUMBER;
BEGIN
  FOR i IN 1..10 LOOP
    INSERT INTO p VALUES (i * 2, 'p' || i) RETURNING id INTO k;
    INSERT INTO c VALUES (i, k);
  END LOOP;
END;
/
COMMIT;
DECLARE
  k NUMBER;
BEGIN
  FOR i IN 1..5 LOOP
    DELETE FROM c WHERE id = i RETURNING p INTO k;
    DELETE FROM p WHERE id = k;
  END LOOP;
END;
/
COMMIT;
