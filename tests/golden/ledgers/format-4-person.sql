BEGIN TRANSACTION;
CREATE TABLE budget (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  epsilon REAL NOT NULL CHECK (epsilon > 0), delta REAL NOT NULL CHECK (delta > 0 AND delta < 1),
  cap_units INTEGER NOT NULL CHECK (typeof(cap_units) = 'integer' AND cap_units >= 0),
  neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'replace-one')),
  note TEXT NOT NULL);
INSERT INTO "budget" VALUES(1,2.0,1.0e-06,221006274179,'replace-one','');
CREATE TABLE mechanisms (
  release INTEGER NOT NULL, position INTEGER NOT NULL,
  units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units >= 0),
  PRIMARY KEY (release, position));
INSERT INTO "mechanisms" VALUES(1,0,54975581389);
CREATE TABLE releases (
  number INTEGER PRIMARY KEY,
  key TEXT NOT NULL, plan_id TEXT NOT NULL, description TEXT NOT NULL,
  units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units >= 0),
  state TEXT NOT NULL CHECK (state IN ('spent', 'published')),
  fingerprint TEXT CHECK ((fingerprint IS NULL) = (state = 'spent')),
  directory TEXT CHECK (directory IS NULL OR state = 'published'),
  spent_at TEXT NOT NULL, unit TEXT NOT NULL DEFAULT 'row' CHECK (trim(unit) <> ''));
INSERT INTO "releases" VALUES(1,'a','plan-a','dp-merf on visits; per person_id of at most 3 rows',54975581389,'spent',NULL,NULL,'2026-01-02T03:04+00:00','person_id');
CREATE TRIGGER budget_is_set_once BEFORE INSERT ON budget WHEN EXISTS (SELECT 1 FROM budget)
  BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER budget_is_kept BEFORE UPDATE ON budget BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER budget_stays BEFORE DELETE ON budget BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER releases_stay BEFORE DELETE ON releases BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER releases_are_appended BEFORE INSERT ON releases
  WHEN NEW.state <> 'spent' OR NEW.number <> (SELECT count(*) + 1 FROM releases)
  OR NEW.units > (SELECT cap_units FROM budget) - (SELECT coalesce(sum(units), 0) FROM releases)
  BEGIN SELECT RAISE(ABORT, 'a release is appended as spent, within the cap'); END;
CREATE TRIGGER releases_are_kept BEFORE UPDATE OF number, key, plan_id, description, units, spent_at
  ON releases BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER units_are_kept BEFORE UPDATE OF unit ON releases BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER units_are_one BEFORE INSERT ON releases WHEN EXISTS (SELECT 1 FROM releases WHERE unit <> NEW.unit) BEGIN SELECT RAISE(ABORT, 'a ledger counts for one unit of privacy'); END;
COMMIT;
PRAGMA application_id = 1431192659;
PRAGMA user_version = 4;
