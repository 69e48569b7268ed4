-- purpose: a PL/SQL block fails at its last statement: all its changes are undone, and the transaction continues
-- covers: fail-halfway
-- same: no, PostgreSQL ends the transaction with an error
CREATE TABLE f (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO f VALUES (1, 'start');
COMMIT;
INSERT INTO f VALUES (2, 'kept');
-- error: ORA-00001
BEGIN
  UPDATE f SET v = 'gone';
  INSERT INTO f VALUES (3, 'gone');
  DELETE FROM f WHERE id = 2;
  INSERT INTO f VALUES (1, 'fails');
END;
/
-- error: ORA-20001
BEGIN
  DELETE FROM f;
  RAISE_APPLICATION_ERROR(-20001, 'not today');
END;
/
UPDATE f SET v = 'after' WHERE id = 1;
COMMIT;
