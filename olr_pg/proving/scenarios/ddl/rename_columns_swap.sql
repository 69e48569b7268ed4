-- purpose: two columns swap their names, with a third name in between
-- others: tools that use the names swap the values
-- covers: rename-column
CREATE TABLE r (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b VARCHAR2(10));
INSERT INTO r VALUES (1, 'was a', 'was b');
COMMIT;
-- start
ALTER TABLE r RENAME COLUMN a TO tmp;
ALTER TABLE r RENAME COLUMN b TO a;
ALTER TABLE r RENAME COLUMN tmp TO b;
UPDATE r SET a = a || '!';
INSERT INTO r (id, a, b) VALUES (2, 'new a', 'new b');
COMMIT;
