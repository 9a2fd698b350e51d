BEGIN TRANSACTION;
CREATE TABLE budget (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  epsilon REAL NOT NULL CHECK (epsilon > 0), delta REAL NOT NULL CHECK (delta > 0 AND delta < 1),
  cap_units INTEGER NOT NULL CHECK (typeof(cap_units) = 'integer' AND cap_units >= 0),
  neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'replace-one')),
  note TEXT NOT NULL,
  slack_cap_units INTEGER NOT NULL CHECK (typeof(slack_cap_units) = 'integer' AND slack_cap_units > 0));
INSERT INTO "budget" VALUES(1,5.0,1.0e-05,1369391463638,'add-remove','',4611686018427);
CREATE TABLE mechanisms (
  release INTEGER NOT NULL, position INTEGER NOT NULL,
  units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units >= 0),
  PRIMARY KEY (release, position));
INSERT INTO "mechanisms" VALUES(1,0,137438953472);
INSERT INTO "mechanisms" VALUES(2,0,549755813888);
CREATE TABLE releases (
  number INTEGER PRIMARY KEY,
  key TEXT NOT NULL, plan_id TEXT NOT NULL, description TEXT NOT NULL,
  units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units >= 0),
  state TEXT NOT NULL CHECK (state IN ('spent', 'published')),
  fingerprint TEXT CHECK ((fingerprint IS NULL) = (state = 'spent')),
  directory TEXT CHECK (directory IS NULL OR state = 'published'),
  spent_at TEXT NOT NULL,
  slack_units INTEGER NOT NULL CHECK (typeof(slack_units) = 'integer' AND slack_units >= 0), unit TEXT NOT NULL DEFAULT 'row' CHECK (trim(unit) <> ''));
INSERT INTO "releases" VALUES(1,'a','plan-a','encoder on images',137438953472,'spent',NULL,NULL,'2026-01-02T03:04+00:00',46116860185,'row');
INSERT INTO "releases" VALUES(2,'b','plan-b','dp-merf on images',549755813888,'spent',NULL,NULL,'2026-01-02T03:04+00:00',0,'row');
CREATE TRIGGER budget_is_set_once BEFORE INSERT ON budget WHEN EXISTS (SELECT 1 FROM budget)
  BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER budget_is_kept BEFORE UPDATE ON budget BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER budget_stays BEFORE DELETE ON budget BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER releases_stay BEFORE DELETE ON releases BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER releases_are_appended BEFORE INSERT ON releases
  WHEN NEW.state <> 'spent' OR NEW.number <> (SELECT count(*) + 1 FROM releases)
  OR NEW.units > (SELECT cap_units FROM budget) - (SELECT coalesce(sum(units), 0) FROM releases)
  OR NEW.slack_units > (SELECT slack_cap_units FROM budget) - (SELECT coalesce(sum(slack_units), 0) FROM releases)
  BEGIN SELECT RAISE(ABORT, 'a release is appended as spent, within the cap'); END;
CREATE TRIGGER releases_are_kept BEFORE UPDATE OF number, key, plan_id, description, units, spent_at, slack_units
  ON releases BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER units_are_kept BEFORE UPDATE OF unit ON releases BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER units_are_one BEFORE INSERT ON releases WHEN EXISTS (SELECT 1 FROM releases WHERE unit <> NEW.unit) BEGIN SELECT RAISE(ABORT, 'a ledger counts for one unit of privacy'); END;
COMMIT;
PRAGMA application_id = 1431192659;
PRAGMA user_version = 6;
