"""Recorded bits of everything but plain releases: classifiers, encoders, decoders, parties, rows added, ledgers.

Noise is seeded, and so are the drawn rows of a step, keys and nonces; dates and versions are masked. What is
compared: plans, fingerprints, every noisy integer that left the private side, files with certificates, models,
predictions, rows, and the rows of ledgers.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import safetensors.numpy

from understudy.accounting.mechanisms import UNITS_PER_COST, Budget, Neighbours
from understudy.classifier.model import Classifier
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.errors import BudgetError, InputError
from understudy.methods import fit_release, make_plan
from understudy.networks import EncoderTraining
from understudy.plan.encoder import ExtractorPlan
from understudy.plan.plan import Plan
from understudy.plan.request import Request, load_request
from understudy.private.dpsgd.classifier import train_classifier
from understudy.private.dpsgd.encoder import train_private_encoder
from understudy.private.ledger import create_ledger, find_published, mark_published, read_ledger, spend
from understudy.private.noise import SeededNoise
from understudy.private.parties import merge_partials, write_partial
from understudy.private.release import append_rows, release_table
from understudy.private.secret_files import read_secret
from understudy.private.spending import Receipt
from understudy.released import Release
from understudy.schema import PrivacyUnit, load_schema

LEDGERS = Path(__file__).parent / "ledgers"
KEYS = {"north": bytes(range(32)), "south": bytes(range(1, 33))}
PATIENTS = load_schema(
    {
        "name": "patients",
        "columns": [
            {"name": "bmi", "kind": "continuous", "bounds": [10, 80], "nullable": True},
            {"name": "age", "kind": "integer", "bounds": [0, 120]},
            {"name": "city", "kind": "categorical", "categories": ["Bonn", "Lima", "Oslo"]},
            {"name": "ill", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
DOTS = load_schema(
    {
        "name": "dots",
        "rows": 90,
        "image": {"height": 6, "width": 6},
        "columns": [{"name": "label", "kind": "categorical", "role": "label", "categories": ["a", "b"]}],
    }
)
LINES = load_schema(
    {
        "name": "lines",
        "rows": 40,
        "image": {"height": 28, "width": 28},
        "columns": [{"name": "label", "kind": "categorical", "role": "label", "categories": ["a", "b"]}],
    }
)


class Recorded(SeededNoise):
    """Seeded noise that remembers its scales and everything that it has let out."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.scales: list[list[int | str]] = []
        self.released: list[Any] = []

    def add_noise(self, sums: Any, noise_std: int, receipt: Receipt) -> Any:
        return self._keep("gaussian", noise_std, super().add_noise(sums, noise_std, receipt))

    def add_laplace_noise(self, sums: Any, scale: int, receipt: Receipt) -> Any:
        return self._keep("laplace", scale, super().add_laplace_noise(sums, scale, receipt))

    def _keep(self, kind: str, scale: int, noisy: Any) -> Any:
        self.scales.append([kind, len(noisy), scale])
        self.released.append(noisy)
        return noisy


class TakenForPrivate(SeededNoise):
    """Seeded noise that passes for real, as only such products are given back by their key."""

    name = "for golden bits"
    is_private = True


@pytest.fixture(autouse=True)
def known_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's randomness, which decides rows of a step, ids, keys and nonces, from a seed.

    Bytes of each purpose and length come from a stream of their own, so that it does not matter which are asked
    for first.
    """
    streams: dict[tuple[str, int], np.random.Generator] = {}

    def stream(purpose: str, count: int) -> bytes:
        made = np.random.default_rng([len(purpose), count])
        return streams.setdefault((purpose, count), made).bytes(count)

    monkeypatch.setattr(os, "urandom", lambda count: stream("urandom", count))
    monkeypatch.setattr(secrets, "token_bytes", lambda count: stream("token_bytes", count))
    monkeypatch.setattr(secrets, "token_hex", lambda count: stream("token_hex", count).hex())


def patients(count: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, count)
    return pa.table(
        {
            "bmi": pa.array(10 + 70 * rng.random(count) ** 3, mask=rng.random(count) < 0.1),
            "age": age,
            "city": rng.choice(["Bonn", "Lima", "Oslo"], count).tolist(),
            "ill": ["yes" if years > 60 else "no" for years in age],
        }
    )


def pictures(schema: Any, count: int) -> pa.Table:
    """Images whose upper or lower half is bright."""
    rng, image = np.random.default_rng(3), schema.image
    codes = rng.integers(0, 2, count)
    pixels = rng.integers(0, 60, (count, image.height, image.width))
    half = image.height // 2
    pixels[codes == 0, :half] += 190
    pixels[codes == 1, half:] += 190
    flat = pixels.reshape(count, -1)
    cells = {name: flat[:, place] for place, name in enumerate(image.names)}
    return pa.table(cells | {"label": ["ab"[code] for code in codes]})


def plan_of(method: str = "dp-merf", delta: float = 1e-5, parties: int = 1, **wishes: Any) -> Plan:
    options = ({"num_features": 6} if method == "dp-merf" else {}) | wishes
    plan = make_plan(PATIENTS, Budget(1.0, delta), method=method, options=options)
    return replace(plan, parties=parties)


def masked(product: Any) -> Any:
    """The same product as if it had been made at a fixed time with fixed software."""
    facts = dict(product.facts)
    facts["created"] = "2000-01-01 00:00 UTC"
    facts["software"] = dict.fromkeys(facts["software"], "0")
    return replace(product, facts=tuple(facts.items()))


def sha256(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()


def canonical(document: Any) -> str:
    return sha256(json.dumps(document, sort_keys=True, ensure_ascii=True).encode())


def in_short(prefix: str, numbers: Any) -> dict[str, float]:
    """Size, mean, spread and ends of numbers, which hardly move from machine to machine."""
    flat = np.asarray(numbers, dtype=np.float64).ravel()
    told = {"size": flat.size, "mean": flat.mean(), "spread": flat.std(), "first": flat[0]}
    return {f"{prefix} {name}": float(value) for name, value in told.items()}


def bits_of(product: Any) -> dict[str, str]:
    """Hashes of a product, by what they are of."""
    product = masked(product)
    files = {f"file {name}": sha256(content) for name, content in product.files().items()}
    return files | {
        "plan": product.plan.fingerprint,
        "plan document": canonical(product.plan.to_dict()),
        "fingerprint": product.fingerprint,
        "facts": canonical(dict(product.facts)),
    }


def certificate_of(product: Any) -> dict[str, Any]:
    """The certificate without what hangs on the last digits of numbers."""
    stated = json.loads(masked(product).files()["certificate.json"])
    return {"keys": sorted(paths_in(stated))}


def paths_in(document: Any, before: str = "") -> set[str]:
    """The names of all fields, with those they lie in."""
    if isinstance(document, dict):
        found = [paths_in(value, f"{before}.{name}") for name, value in document.items()]
        return {before}.union(*found)
    if isinstance(document, list):
        inner = [paths_in(value, f"{before}[]") for value in document if isinstance(value, dict | list)]
        return {before}.union(*inner)
    return {before}


def noise_bits(noise: Recorded) -> dict[str, str]:
    return {
        "scales of noise": canonical(noise.scales),
        "released integers": canonical([vector.tolist() for vector in noise.released]),
    }


def noise_in_short(noise: Recorded) -> dict[str, float]:
    scales = [float(scale) for _, _, scale in noise.scales]
    sizes = [float(size) for _, size, _ in noise.scales]
    return in_short("scales", scales) | in_short("sizes", sizes)


def check_product(golden: Any, name: str, product: Any, noise: Recorded, **more: Any) -> None:
    """Compare a product: its bits, and what is in the certificate's places."""
    summary = noise_in_short(noise) | more.pop("summary", {})
    value = bits_of(product) | noise_bits(noise) | more
    golden.check(name, value, portable=False, summary=summary, tolerance=1e-3)
    golden.check(f"{name}, certificate", certificate_of(product), portable=True)


# Classifiers


def classified(plan: ClassifierPlan, rows: pa.Table) -> tuple[Classifier, Recorded, dict[str, Any]]:
    noise = Recorded(5)
    made = train_classifier(rows, plan, noise=noise)
    chances = made.probabilities(made.codes(rows.slice(0, 30)))
    found = {
        "weights": sha256(np.ascontiguousarray(made.maps.weights, dtype="<f8").tobytes()),
        "chances": sha256(chances.astype("<f8").tobytes()),
        "predictions": canonical(made.predict(rows)),
        "summary": in_short("weights", made.maps.weights) | in_short("chances", chances),
    }
    return made, noise, found


CLASSIFIERS = {
    "all rows in every step": (PATIENTS, Training(steps=6), None),
    "sampled rows": (PATIENTS, Training(steps=6, sampling_rate=0.25), None),
    "several projected maps without a look": (
        PATIENTS,
        Training(look=0, projected=3, num_maps=3, inverse_temperature=2.0, steps=6),
        400,
    ),
    "steps by the budget": (PATIENTS, Training(), 400),
    "cosines of images": (DOTS, Training(inputs="cosines", num_coefficients=9, steps=4), None),
    "strokes of images": (LINES, Training(steps=2, look=0), None),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(golden: Any, name: str) -> None:
    schema, training, num_rows = CLASSIFIERS[name]
    plan = ClassifierPlan(schema, Budget(2.0), training, num_rows)
    rows = patients(400) if schema is PATIENTS else pictures(schema, schema.rows)
    made, noise, found = classified(plan, rows)
    check_product(golden, f"classifier, {name}", made, noise, **found)


# Networks that are learnt by noisy descent


ENCODERS = {
    "sampled images": (EncoderTraining((3,), (1,), (3,), components=4, steps=5, batch=30), 1.0),
    "all images": (EncoderTraining((2, 3), (2, 1), (3, 3), components=4, steps=3, batch=90), 0.5),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders(golden: Any, name: str) -> None:
    training, clip = ENCODERS[name]
    plan, noise = ExtractorPlan(DOTS, Budget(2.0), training, clip), Recorded(6)
    made = train_private_encoder(pictures(DOTS, 90), plan, noise=noise)
    weights = made.encoder.weights
    summary: dict[str, float] = {}
    for tensor, values in weights.items():
        summary |= in_short(tensor, values)
    check_product(
        golden,
        f"encoder, {name}",
        made,
        noise,
        weights=made.encoder.sha256,
        cost=canonical(made.encoder.private_cost),
        summary=summary,
    )


def test_releases_made_with_a_private_encoder(golden: Any) -> None:
    training = ENCODERS["sampled images"][0]
    rows = pictures(DOTS, 90)
    network = train_private_encoder(rows, ExtractorPlan(DOTS, Budget(2.0), training), noise=SeededNoise(6))
    plan = make_plan(
        DOTS, Budget(5.0), method="dp-mepf", options={"encoder": network.network("own"), "stopping": 0, "steps": 2}
    )
    noise = Recorded(7)
    made = release_table(rows, plan, noise=noise)
    check_product(
        golden,
        "release with a private encoder",
        made,
        noise,
        summary={"epsilon": plan.epsilon(), "own epsilon": plan.own_epsilon()},
    )


def test_decoders(golden: Any) -> None:
    plan = make_plan(DOTS, Budget(5.0), method="dp-merf-ae", options={"descent_steps": 3, "steps": 3})
    noise = Recorded(8)
    made = release_table(pictures(DOTS, 90), plan, noise=noise)
    rows = fit_release(made).sample(20, seed=1)
    cells = [rows[name].to_pylist() for name in rows.column_names]
    summary: dict[str, float] = {}
    for name, values in made.weights:
        summary |= in_short(name, values)
    check_product(
        golden,
        "decoder of dp-merf-ae",
        made,
        noise,
        weights=sha256(safetensors.numpy.save(dict(made.weights))),
        rows=canonical([rows.column_names, cells]),
        summary=summary,
    )


# Parties and rows that are added


def rounds_of(plan: Plan, folder: Path, *, noise: Recorded, ledger: Path | None) -> tuple[Release, dict[str, Any]]:
    """All rounds of two parties; what went to and fro is hashed on the way."""
    asked: Release | Request = Request(plan)
    found: dict[str, Any] = {}
    own_noise = plan.parties > 1
    while isinstance(asked, Request):
        name = f"round {asked.round}"
        path = folder / f"{asked.round}.json"
        asked.save(path)
        found[f"{name} request"] = asked.fingerprint
        found[f"{name} request file"] = sha256(path.read_bytes())
        asked, files = load_request(path), []
        for place, (party, key) in enumerate(KEYS.items()):
            files.append(folder / f"{asked.round}-{party}")
            header = write_partial(
                patients(50 + 30 * place, place),
                asked,
                party=party,
                path=files[-1],
                key=key,
                max_epsilon=1.0 if own_noise else None,
                noise=noise if own_noise else None,
            )
            told, content = read_secret(files[-1], [key])
            assert told == header
            found[f"{name} header of {party}"] = canonical(header)
            found[f"{name} sums of {party}"] = sha256(content)
            found[f"{name} file of {party}"] = sha256(files[-1].read_bytes())
        asked = merge_partials(asked, files, keys=list(KEYS.values()), ledger=ledger, key="both", noise=noise)
    return asked, found


PARTIES = {
    "one noise, dp-merf": ("dp-merf", 1e-5, 1),
    "one noise, dp-anova": ("dp-anova", 1e-5, 1),
    "noise of their own, dp-anova": ("dp-anova", 1e-5, 2),
    "noise of their own, pure": ("dp-merf", 0.0, 2),
}


@pytest.mark.parametrize("name", PARTIES)
def test_parties(golden: Any, tmp_path: Path, name: str) -> None:
    method, delta, parties = PARTIES[name]
    noise, ledger = Recorded(9), None
    if parties == 1:
        ledger = tmp_path / "ledger.db"
        create_ledger(ledger, Budget(3.0))
    made, found = rounds_of(plan_of(method, delta, parties), tmp_path, noise=noise, ledger=ledger)
    check_product(golden, f"parties, {name}", made, noise, **found)
    if ledger is not None:
        golden.check(
            f"parties, {name}, ledger", canonical(tables_of(ledger)), portable=False, summary=spent_in_short(ledger)
        )


@pytest.mark.parametrize(("method", "delta"), [("dp-merf", 1e-5), ("dp-anova", 1e-5), ("dp-merf", 0.0)])
def test_rows_that_are_added(golden: Any, tmp_path: Path, method: str, delta: float) -> None:
    noise, ledger = Recorded(10), tmp_path / "ledger.db"
    create_ledger(ledger, Budget(3.0, delta))
    earlier = masked(release_table(patients(200), plan_of(method, delta), noise=noise))
    made = masked(append_rows(patients(60, 1), earlier, noise=noise))
    made = append_rows(patients(40, 2), made, ledger=ledger, key="k", noise=noise)
    summary = in_short("last vector", made.vectors[-1])
    check_product(golden, f"append, {method} at delta {delta:g}", made, noise, summary=summary)


# Ledgers


def tables_of(ledger: Path) -> dict[str, Any]:
    """What a ledger's file holds. Dates, directories and fingerprints, which hold dates, are masked."""
    found: dict[str, Any] = {}
    with closing(sqlite3.connect(ledger)) as connection:
        connection.row_factory = sqlite3.Row
        found["format"] = connection.execute("PRAGMA user_version").fetchone()[0]
        found["application"] = connection.execute("PRAGMA application_id").fetchone()[0]
        for table in ("budget", "releases", "mechanisms"):
            rows = connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            found[table] = [dict(row) for row in rows]
    for row in found["releases"]:
        row["spent_at"] = len(row["spent_at"])
        row["fingerprint"] = row["fingerprint"] and len(row["fingerprint"])
        row["directory"] = row["directory"] and Path(row["directory"]).name
    return found


def spent_in_short(ledger: Path) -> dict[str, float]:
    state = read_ledger(ledger)
    rows = {f"units of row {row.number}": float(row.units) for row in state.rows}
    slack = {f"slack of row {row.number}": float(row.slack_units) for row in state.rows}
    return rows | slack | {"cap": float(state.cap_units), "slack cap": float(state.slack_cap_units)}


def into_release(ledger: Path, folder: Path) -> Any:
    rows, plan = patients(80), plan_of("dp-anova")
    return release_table(rows, plan, directory=folder / "release", ledger=ledger, key="r", noise=TakenForPrivate(1))


def into_classifier(ledger: Path, folder: Path) -> Any:
    plan = ClassifierPlan(PATIENTS, Budget(1.0), Training(steps=3, sampling_rate=0.5))
    return train_classifier(
        patients(80), plan, directory=folder / "classifier", ledger=ledger, key="c", noise=TakenForPrivate(2)
    )


def into_encoder(ledger: Path, folder: Path) -> Any:
    plan = ExtractorPlan(DOTS, Budget(2.0), ENCODERS["sampled images"][0])
    return train_private_encoder(
        pictures(DOTS, 90), plan, directory=folder / "encoder", ledger=ledger, key="e", noise=TakenForPrivate(3)
    )


def into_parties(ledger: Path, folder: Path) -> Any:
    """Sums of parties without noise, which the merger's ledger pays for round by round."""
    made, _ = rounds_of(plan_of("dp-anova"), folder, noise=Recorded(4), ledger=ledger)
    return made


def into_own_noise(ledger: Path, folder: Path) -> Any:
    """A party's own noise, which its own ledger pays for."""
    request = Request(plan_of("dp-anova", parties=2))
    write_partial(
        patients(50),
        request,
        party="north",
        path=folder / "own",
        key=KEYS["north"],
        ledger=ledger,
        noise=SeededNoise(5),
    )


def into_append(ledger: Path, folder: Path) -> Any:
    earlier = masked(release_table(patients(80), plan_of(), noise=SeededNoise(6)))
    directory = folder / "appended"
    return append_rows(patients(20, 3), earlier, directory=directory, ledger=ledger, noise=SeededNoise(7))


SPENDERS: dict[str, Callable[[Path, Path], Any]] = {
    "release": into_release,
    "classifier": into_classifier,
    "encoder": into_encoder,
    "parties": into_parties,
    "own noise of a party": into_own_noise,
    "append": into_append,
}


def test_one_ledger_of_everybody_who_spends(golden: Any, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(12.0), reserve=0.1, note="golden")
    for name, spend_into in SPENDERS.items():
        made = spend_into(ledger, tmp_path)
        state = read_ledger(ledger)
        if made is not None:
            assert state.rows[-1].fingerprint == made.fingerprint, name
            assert state.rows[-1].state == "published", name
        golden.check(
            f"ledger after {name}", tables_of(ledger), portable=False, summary=spent_in_short(ledger), tolerance=1e-4
        )
    resumable = {"release": into_release, "classifier": into_classifier, "encoder": into_encoder}
    before = tables_of(ledger)
    for name, spend_into in resumable.items():
        again = tmp_path / f"again {name}"
        again.mkdir()
        made = spend_into(ledger, again)
        kept = tmp_path / name
        assert tables_of(ledger) == before, f"{name}: the same key and plan cost again"
        for file in kept.iterdir():
            assert (again / name / file.name).read_bytes() == file.read_bytes(), (name, file.name)


def test_units_of_privacy_and_other_notions_in_ledgers(golden: Any, tmp_path: Path) -> None:
    """People with several rows, replaced rows, and pure releases."""
    people = replace(PATIENTS, privacy=PrivacyUnit("person", 3))
    visits = patients(40).append_column("person", pa.array([str(i % 9) for i in range(40)]))
    counted = {"num_features": 4, "neighbours": Neighbours.REPLACE_ONE, "num_rows": 40}
    cases = {
        "people": (people, visits, Budget(1.0), {"num_features": 4}, Neighbours.ADD_REMOVE),
        "replaced rows": (PATIENTS, patients(40), Budget(1.0), counted, Neighbours.REPLACE_ONE),
        "pure": (PATIENTS, patients(40), Budget(1.0, 0), {"num_features": 4}, Neighbours.ADD_REMOVE),
    }
    for name, (schema, rows, budget, options, neighbours) in cases.items():
        ledger, noise = tmp_path / name, Recorded(11)
        create_ledger(ledger, Budget(2.0, budget.delta), neighbours=neighbours)
        plan = make_plan(schema, budget, method="dp-merf", options=options)
        made = release_table(rows, plan, ledger=ledger, key="k", noise=noise)
        check_product(golden, f"release, {name}", made, noise)
        summary = spent_in_short(ledger)
        golden.check(f"ledger, {name}", tables_of(ledger), portable=False, summary=summary)


def file_of(fixture: Path, folder: Path) -> Path:
    """A ledger from its text."""
    made = folder / fixture.stem
    with closing(sqlite3.connect(made)) as connection:
        connection.executescript(fixture.read_text("utf-8"))
    return made


FIXTURES = sorted(LEDGERS.glob("*.sql"))


def test_a_ledger_of_every_format_is_at_hand() -> None:
    formats = {fixture.stem.split("-")[1] for fixture in FIXTURES}
    assert formats >= set("123456")


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.stem)
def test_ledgers_of_every_format_are_read(golden: Any, tmp_path: Path, fixture: Path) -> None:
    ledger = file_of(fixture, tmp_path)
    state = read_ledger(ledger)
    told = asdict(state) | {"neighbours": state.neighbours.value}
    told["rows"] = [asdict(row) for row in state.rows]
    told["remaining_units"] = state.remaining_units
    told["remaining_slack_units"] = state.remaining_slack_units
    golden.check(f"{fixture.stem}, read", told, portable=True)
    epsilons = {"spent": state.epsilon_of(state.spent_units), "remaining": state.epsilon_of(state.remaining_units)}
    golden.check(f"{fixture.stem}, epsilons", epsilons, portable=False, summary=epsilons)


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.stem)
def test_ledgers_of_every_format_are_spent_into(golden: Any, tmp_path: Path, fixture: Path) -> None:
    """Also by the unit: a file of an older format knew it from a sentence."""
    ledger = file_of(fixture, tmp_path)
    first = read_ledger(ledger).rows[0]
    unit = first.unit
    words = {"key": "new", "plan_id": "plan-new", "description": "dp-anova on patients"}
    with pytest.raises(InputError, match="releases per"):
        spend(ledger, **words, unit="somebody else", costs=[0.01])
    with pytest.raises(InputError, match="another plan"):
        spend(ledger, **words | {"key": first.key}, unit=unit, costs=[0.01])
    left = read_ledger(ledger).remaining_units
    with pytest.raises(BudgetError):
        spend(ledger, **words, unit=unit, costs=[Fraction(left + 1, UNITS_PER_COST)])
    row = spend(ledger, **words, unit=unit, costs=[0.01, Fraction(1, 30)])
    mark_published(ledger, row, fingerprint="12" * 32, directory="/releases/new")
    found = find_published(ledger, key="new", plan_id="plan-new")
    assert found is not None
    assert found.number == row
    golden.check(f"{fixture.stem}, spent into", tables_of(ledger), portable=True)
