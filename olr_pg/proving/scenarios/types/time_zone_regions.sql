-- purpose: times of named zones, in the hour that comes twice, and of the session's zone
-- others: tools deliver another instant where the zone's rules changed, or print the zone's number
-- covers: extremes
-- needs: time-zone-regions
-- same: no, PostgreSQL does not keep the zone
CREATE TABLE z (id NUMBER(4) PRIMARY KEY, v TIMESTAMP(6) WITH TIME ZONE, l TIMESTAMP(6) WITH LOCAL TIME ZONE);
INSERT INTO z VALUES (1, TIMESTAMP '2024-06-01 12:00:00.5 Europe/Zurich', TIMESTAMP '2024-06-01 12:00:00.5 Europe/Zurich');
INSERT INTO z VALUES (2, TIMESTAMP '2024-10-27 02:30:00 Europe/Zurich', TIMESTAMP '2024-10-27 02:30:00 +01:00');
INSERT INTO z VALUES (3, TIMESTAMP '1950-01-01 00:00:00 America/New_York', NULL);
COMMIT;
UPDATE z SET v = v + INTERVAL '6' MONTH;
UPDATE z SET l = v WHERE id = 3;
COMMIT;
DELETE FROM z WHERE id = 1;
COMMIT;
