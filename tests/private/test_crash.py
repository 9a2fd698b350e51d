from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from understudy.accounting.mechanisms import Budget, mu_squared_of_budget
from understudy.private.ledger import create_capped_ledger, read_ledger
from understudy.released import load_release, verify_release

KILLS = 50

# One process imports everything and forks workers that release without end; each is killed at a
# random moment of its work.
HARNESS = """
import os, random, signal, sys, time
from pathlib import Path
from understudy import Budget, dp_merf, load_schema
from understudy.private.release import release_table

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
schema = load_schema({"name": "t", "columns": [{"name": "x", "kind": "continuous", "bounds": [0, 1]}]})
plans = [dp_merf(schema, Budget(1.0), num_features=8, length_scale=scale) for scale in (0.1, "private")]

def release(name, plan):
    release_table(
        folder / "rows.csv", plan, directory=folder / "out" / name,
        ledger=folder / "ledger.db", key=name,
    )
    os.write(1, b"+")

def work(worker):
    for number in range(10**6):
        release(f"{worker}-{number}", plans[number % 2])

release("warm-up", plans[0])  # so that workers spend their time on releases
start = time.monotonic()
release("measured", plans[1])
usual = time.monotonic() - start
for worker in range(kills):
    child = os.fork()
    if child == 0:
        try:
            work(worker)
        finally:
            os._exit(1)
    time.sleep(random.uniform(0, (1 + worker % 3) * usual))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "a worker ended by itself"
"""


def test_no_release_lacks_its_ledger_row_or_a_file_after_fifty_kills(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "rows.csv").write_text("x\n" + "0.25\n" * 300)
    cap = mu_squared_of_budget(Budget(1.0)) * 10**6
    create_capped_ledger(tmp_path / "ledger.db", Budget(100.0, 1e-5), cap=cap)
    finished = subprocess.run(
        [sys.executable, "-c", HARNESS, str(tmp_path), str(KILLS)], capture_output=True, text=True, check=True
    ).stdout.count("+")

    rows = {row.key: row for row in read_ledger(tmp_path / "ledger.db").rows}
    # What a killed writer leaves has a leading dot and is no release.
    found = [path for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")]
    for path in found:
        fingerprint = verify_release(path).fingerprint
        row = rows[path.name]
        facts = dict(load_release(path).facts)
        assert facts["ledger"] == {"key": row.key, "row": row.number}
        assert row.fingerprint in (None, fingerprint)
    for row in rows.values():
        assert row.state == "spent" or Path(row.directory or "") in found
    assert 2 <= finished <= len(found) <= len(rows)
    assert finished < len(rows) <= finished + KILLS, "some kills fell between spend and release"
