-- purpose: a text with a character of code 0, which PostgreSQL's text cannot have
-- others: it ends the text in some tools, and the replication in others
-- covers: character-sets
-- same: no, PostgreSQL has no such character
CREATE TABLE v (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20));
INSERT INTO v VALUES (1, 'plain');
COMMIT;
UPDATE v SET v = 'a' || CHR(0) || 'b';
COMMIT;
UPDATE v SET v = 'plain again';
COMMIT;
