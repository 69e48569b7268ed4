-- purpose: columns that hold ROWIDs
-- covers: extremes
-- needs: rowid-type
-- same: no, it looks at ROWIDs
CREATE TABLE r (id NUMBER(4) PRIMARY KEY, v ROWID, u UROWID);
INSERT INTO r (id) VALUES (1);
COMMIT;
UPDATE r SET v = ROWID, u = ROWID;
COMMIT;
UPDATE r SET v = NULL;
COMMIT;
