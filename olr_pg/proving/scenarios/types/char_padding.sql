-- purpose: CHAR is stored with trailing spaces, and compared without them
-- covers: padding
CREATE TABLE c (id NUMBER(4) PRIMARY KEY, a CHAR(1), b CHAR(10), d CHAR(10 CHAR));
INSERT INTO c VALUES (1, 'x', 'short', 'žluť');
INSERT INTO c VALUES (2, 'y', '1234567890', 'žluťoučký');
INSERT INTO c VALUES (3, NULL, 'b  ', NULL);
COMMIT;
UPDATE c SET b = 'new' WHERE b = 'short';
COMMIT;
UPDATE c SET a = 'z', d = 'x' WHERE b = 'b';
COMMIT;
DELETE FROM c WHERE b = 'new';
COMMIT;
