-- purpose: JSON_TRANSFORM changes parts of documents, in the row and out of it, which Oracle may write in place
-- others: the redo contains only the changed parts of the document
-- covers: lob-write
-- needs: json-transform
CREATE TABLE d (id NUMBER(4) PRIMARY KEY, v JSON);
INSERT INTO d VALUES (1, JSON('{"a": 1, "b": "short", "c": [1, 2, 3]}'));
INSERT INTO d SELECT 2, JSON_OBJECT('a' VALUE 1, 'b' VALUE 'short', 'parts' VALUE JSON_ARRAYAGG(JSON_OBJECT('n' VALUE LEVEL, 'text' VALUE RPAD('t' || LEVEL, 100, '.')) RETURNING CLOB) FORMAT JSON RETURNING JSON) FROM dual CONNECT BY LEVEL <= 300;
COMMIT;
-- start
UPDATE d SET v = JSON_TRANSFORM(v, SET '$.a' = 2);
COMMIT;
UPDATE d SET v = JSON_TRANSFORM(v, SET '$.b' = 'a text that is much longer than the text before it, so that it does not fit');
COMMIT;
UPDATE d SET v = JSON_TRANSFORM(v, SET '$.b' = 's');
UPDATE d SET v = JSON_TRANSFORM(v, REMOVE '$.a');
COMMIT;
UPDATE d SET v = JSON_TRANSFORM(v, SET '$.parts[150].text' = 'changed in the middle') WHERE id = 2;
COMMIT;
UPDATE d SET v = JSON_TRANSFORM(v, SET '$.parts[7].n' = 7777) WHERE id = 2;
ROLLBACK;
