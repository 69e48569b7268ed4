-- purpose: JSON of the binary type of 21c, in the row and out of it
-- others: most tools refuse the type; through LogMiner it is an unreadable BLOB
-- covers: extremes
-- needs: json
CREATE TABLE j (id NUMBER(4) PRIMARY KEY, v JSON);
INSERT INTO j VALUES (1, JSON('{"a": 1, "b": [true, null, "x"]}'));
INSERT INTO j VALUES (2, JSON('[]'));
COMMIT;
UPDATE j SET v = JSON('{"a": 1.50, "deep": {"er": {"est": "ñ"}}}') WHERE id = 2;
COMMIT;
DELETE FROM j WHERE id = 1;
COMMIT;
