-- purpose: columns that an INSERT does not name get their defaults, those of sequences and of the time too
-- covers: nulls
-- same: no, SYSDATE
CREATE SEQUENCE s START WITH 5 INCREMENT BY 5;
CREATE TABLE d (id NUMBER(6) DEFAULT s.NEXTVAL PRIMARY KEY, v VARCHAR2(10) DEFAULT 'none', made DATE DEFAULT SYSDATE NOT NULL, n NUMBER(4) DEFAULT 1 + 1);
INSERT INTO d (v) VALUES ('given');
INSERT INTO d (id) VALUES (1);
INSERT INTO d VALUES (DEFAULT, DEFAULT, DEFAULT, NULL);
COMMIT;
UPDATE d SET v = DEFAULT, n = DEFAULT;
COMMIT;
