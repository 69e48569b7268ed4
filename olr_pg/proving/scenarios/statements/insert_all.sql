-- purpose: INSERT ALL and FIRST insert rows of one query into several tables, in one transaction
-- covers: insert-all
-- same: no, PostgreSQL has no INSERT of several tables
CREATE TABLE small (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20));
CREATE TABLE large (id NUMBER(6) PRIMARY KEY, v VARCHAR2(20));
CREATE TABLE log (id NUMBER(6));
INSERT ALL INTO small VALUES (n, 'all') INTO log (id) VALUES (n) SELECT LEVEL AS n FROM dual CONNECT BY LEVEL <= 3;
COMMIT;
INSERT FIRST WHEN n < 15 THEN INTO small VALUES (n, 'first') WHEN n < 18 THEN INTO large VALUES (n, 'second') ELSE INTO log (id) VALUES (n) SELECT LEVEL + 10 AS n FROM dual CONNECT BY LEVEL <= 10;
COMMIT;
INSERT ALL WHEN MOD(id, 2) = 0 THEN INTO large (id, v) VALUES (id + 100, v) WHEN id > 2 THEN INTO log VALUES (id + 100) SELECT id, v FROM small;
COMMIT;
