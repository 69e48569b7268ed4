-- purpose: a distributed transaction with two-phase commit; another session than the first one commits it
-- others: some tools know only commits of sessions, and lose these transactions
-- covers: xa
-- needs: xa
-- same: no, XA
CREATE TABLE x (id NUMBER(4) PRIMARY KEY, v VARCHAR2(10));
INSERT INTO x VALUES (1, 'start');
COMMIT;
-- start
DECLARE
  rc PLS_INTEGER;
BEGIN
  rc := DBMS_XA.XA_START(DBMS_XA_XID(4711), DBMS_XA.TMNOFLAGS);
  UPDATE x SET v = 'xa' WHERE id = 1;
  INSERT INTO x VALUES (2, 'xa');
  rc := DBMS_XA.XA_END(DBMS_XA_XID(4711), DBMS_XA.TMSUCCESS);
  rc := DBMS_XA.XA_PREPARE(DBMS_XA_XID(4711));
END;
/
-- session: B
INSERT INTO x VALUES (3, 'plain');
COMMIT;
DECLARE
  rc PLS_INTEGER;
BEGIN
  rc := DBMS_XA.XA_COMMIT(DBMS_XA_XID(4711), FALSE);
END;
/
UPDATE x SET v = 'after' WHERE id = 2;
COMMIT;
