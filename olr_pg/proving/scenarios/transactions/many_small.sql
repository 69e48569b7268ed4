-- purpose: a hundred transactions of one row each, alternately in two sessions
-- covers: interleaved
CREATE TABLE m (id NUMBER(6) PRIMARY KEY, v NUMBER(6));
INSERT INTO m VALUES (0, 0);
COMMIT;
-- start
-- session: A
INSERT INTO m VALUES (1, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (2, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (3, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (4, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (5, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (6, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (7, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (8, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (9, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (10, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (11, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (12, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (13, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (14, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (15, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (16, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (17, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (18, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (19, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (20, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (21, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (22, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (23, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (24, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (25, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (26, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (27, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (28, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (29, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (30, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (31, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (32, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (33, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (34, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (35, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (36, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (37, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (38, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (39, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- session: A
INSERT INTO m VALUES (40, 1);
-- session: B
UPDATE m SET v = v + 1 WHERE id = 0;
-- session: A
COMMIT;
-- session: B
COMMIT;
