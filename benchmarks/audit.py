"""Attacks on real releases: what is claimed, against what the best attack sees and the worst row does.

    python benchmarks/audit.py likelihood [--mechanisms NAME ...] [--trials 400]
    python benchmarks/audit.py descents [--descents 40]
    python benchmarks/audit.py sensitivities [--rows 24] [--climbs 40]

`likelihood` makes real releases of two neighbouring tables and looks at the likelihood ratio of everything that
they publish (`likelihood_ratios.py`, on the mechanisms of `audited.py`). It prints the claimed mu, the one that the
whole trade-off curve shows, by the distance of means in deviations and by the area under the curve, and for each
mechanism the mu that the noise that was seen gives (by chi squared), or epsilon for Laplace noise; all with
intervals of 95 %. Where rows are sampled, no Gaussian has the curve of a descent: `descents` counts the delta that
thousands of rows of a descent show at the epsilon that is claimed for it. `sensitivities` looks for rows that move
sums further than is charged (`adversarial_rows.py`), for every method and variant of the contract tests, and for
gradients that are too long (`adversarial_gradients.py`).
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from dataclasses import astuple
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from adversarial_gradients import gradient_ratios
from adversarial_rows import reaches
from audited import MECHANISMS
from likelihood_ratios import Estimate, audited, canary_ratios, delta_seen, effect_size, mu_of_area, mu_of_spread

from understudy import Budget, make_plan
from understudy.accounting.dpsgd import DescentCost
from understudy.errors import UsageError

Row = dict[str, Any]
COSTS = (DescentCost(1.0, 2.0, 4), DescentCost(0.5, 1.0, 4), DescentCost(0.125, 0.6, 8), DescentCost(0.0625, 0.8, 40))
DELTAS = (0.2, 0.1, 0.03, 0.01)


def likelihood(names: list[str], trials: int) -> Iterator[Row]:
    """One line for each mechanism, and one for all together."""
    for name in names:
        mechanism = MECHANISMS[name]()
        audit = audited(mechanism.run, trials)
        refuted = mechanism.refutations(audit, risk=1e-6)
        noises = []
        for place, (part, bound) in enumerate(mechanism.bounds.items()):
            reached = float(audit.distances[:, place].max())
            noises.append(mu_of_spread(reached, audit.residues[place]))
            yield _line(name, part, trials, bound, "noise", noises[-1], "")
        found = {}
        if mechanism.is_pure:
            odds = max(float(np.abs(ratios).max()) for ratios in audit.totals)
            found["largest odds"] = Estimate(odds, odds, odds)
        else:
            found["area"] = mu_of_area(*audit.totals)
        if mechanism.is_gaussian:  # mu adds up in squares; the interval is wider than it need be
            joint = np.sqrt((np.asarray([astuple(each) for each in noises]) ** 2).sum(axis=0))
            found |= {"means": effect_size(*audit.totals), "noise": Estimate(*joint.tolist())}
        for way, estimate in found.items():
            yield _line(name, "all", trials, mechanism.total, way, estimate, "; ".join(refuted))


def _line(name: str, part: str, trials: int, claimed: float, way: str, found: Estimate, refuted: str) -> Row:
    return {
        "method": name,
        "mechanism": part,
        "trials": 2 * trials,
        "claimed": round(claimed, 4),
        "by": way,
        "estimated": round(found.mu, 4),
        "low": round(found.low, 4),
        "high": round(found.high, 4),
        "ratio": round(found.mu / claimed, 4),
        "refuted": refuted,
    }


def descents(count: int) -> Iterator[Row]:
    """The delta that is seen at the epsilon claimed for a delta."""
    for cost in COSTS:
        runs = canary_ratios(cost, descents=count)
        for delta in DELTAS:
            epsilon = cost.epsilon(delta)
            found = delta_seen(*runs, epsilon, threshold=epsilon)
            yield {
                "sampling_rate": cost.sampling_rate,
                "noise_multiplier": cost.noise_multiplier,
                "steps": cost.steps,
                "trials": len(runs[0]) + len(runs[1]),
                "epsilon": round(epsilon, 4),
                "claimed_delta": delta,
                "seen": round(found.mu, 4),
                "low": round(found.low, 4),
                "high": round(found.high, 4),
            }


def sensitivities(rows: int, climbs: int) -> Iterator[Row]:
    """The worst ratio of realised and charged cost: of every method, noise, unit, stage and notion of neighbours."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.contracts.test_sensitivities import personal, variants

    worst: dict[tuple[str, ...], tuple[Fraction, Fraction]] = {}
    for method, _, schema, options in variants():
        for delta, unit in ((1e-5, "row"), (0.0, "row"), (1e-5, "person"), (0.0, "person")):
            try:
                asked = schema if unit == "row" else personal(schema)
                plan = make_plan(asked, Budget(1.0, delta), method=method, options=options)
            except UsageError:  # a descent, or replaced persons: there is no such release
                continue
            for reach in reaches(plan, rows=rows, climbs=climbs):
                key = method, plan.mechanism.name, unit, reach.neighbours.value, reach.stage
                before = worst.get(key, (Fraction(0), Fraction(0)))
                worst[key] = max(before[0], reach.ratio), max(before[1], reach.block_ratio)
    for (method, noise, unit, notion, stage), found in worst.items():
        yield {
            "method": method,
            "noise": noise,
            "unit": unit,
            "neighbours": notion,
            "stage": stage,
            "ratio": f"{float(found[0]):.6f}",
            "block": f"{float(found[1]):.6f}",
            "holds": max(found) <= 1,
        }
    for name, ratio in gradient_ratios().items():
        yield {
            "method": name,
            "noise": "gaussian",
            "unit": "row",
            "neighbours": "add-remove",
            "stage": "gradient",
            "ratio": f"{float(ratio):.6f}",
            "block": f"{float(ratio):.6f}",
            "holds": ratio <= 1,
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="audit.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    ratios = kinds.add_parser("likelihood")
    ratios.add_argument("--mechanisms", nargs="+", choices=list(MECHANISMS), default=list(MECHANISMS))
    ratios.add_argument("--trials", type=int, default=400, help="releases of either table")
    steps = kinds.add_parser("descents")
    steps.add_argument("--descents", type=int, default=40, help="of 500 rows that are there, and 500 that are not")
    attack = kinds.add_parser("sensitivities")
    attack.add_argument("--rows", type=int, default=24)
    attack.add_argument("--climbs", type=int, default=40)
    wish = parser.parse_args()
    if wish.kind == "likelihood":
        lines = likelihood(wish.mechanisms, wish.trials)
    elif wish.kind == "descents":
        lines = descents(wish.descents)
    else:
        lines = sensitivities(wish.rows, wish.climbs)
    writer = None
    for line in lines:
        if writer is None:
            writer = csv.DictWriter(sys.stdout, fieldnames=list(line))
            writer.writeheader()
        writer.writerow(line)
        sys.stdout.flush()


if __name__ == "__main__":
    with np.errstate(all="raise", under="ignore"):
        main()
