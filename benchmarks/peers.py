"""Other people's methods, each by a library in an environment of its own.

    python -m venv ~/dpmm && ~/dpmm/bin/pip install dpmm==0.1.9 pyarrow==19.0.1
    export UNDERSTUDY_DPMM=~/dpmm/bin/python          # then `privbayes`, `aim` and `mst` are methods of the scripts

A peer gets codes, as it would from any careful user: 20 bins of a number's public bounds, a code for each
category and for null. Its codes come back as values, evenly inside bins.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from command_line import Synthesis, timed

from understudy import Schema
from understudy.evaluation.tables import code_table, column_bins
from understudy.schema.columns import Column

RUNNER = Path(__file__).with_name("peer_run.py")
DPMM, SMARTNOISE = "UNDERSTUDY_DPMM", "UNDERSTUDY_SMARTNOISE"
PEERS = {"privbayes": DPMM, "aim": DPMM, "mst": DPMM, "dp-gan": SMARTNOISE}
"""By name: the variable that holds the path of its environment's Python."""


def installed() -> tuple[str, ...]:
    """The peers that can be run here."""
    return tuple(name for name, variable in PEERS.items() if variable in os.environ)


def run_peer(train: pd.DataFrame, schema: Schema, *, peer: str, epsilon: str, seed: int) -> Synthesis:
    """As many rows as ``train`` has, by a peer at delta 1e-5."""
    coded = code_table(schema, train)
    names = [column.name for column in coded.columns]
    widths = [len(column_bins(column).labels) + 1 for column in coded.columns]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pd.DataFrame(coded.bins, columns=names).to_parquet(folder / "codes.parquet")
        job = {"peer": peer, "epsilon": float(epsilon), "delta": 1e-5, "seed": seed}
        job["domain"] = dict(zip(names, widths, strict=True))
        (folder / "job.json").write_text(json.dumps(job))
        wall, cpu = timed([os.environ[PEERS[peer]], RUNNER, folder])
        codes = pd.read_parquet(folder / "made.parquet")
    rng = np.random.default_rng(seed)
    cells = {c.name: _values(c, codes[c.name].to_numpy(), rng) for c in coded.columns}
    return Synthesis(pd.DataFrame(cells), wall, cpu)


def _values(column: Column, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Values of codes as the metrics code them: 0 is null, bins follow from 1, unlisted comes last."""
    bins = column_bins(column)
    if column.is_choice:
        known = np.array([None, *column.categories, None], dtype=object)
        found = known[codes]
    else:
        lows, highs = np.array(bins.edges[:-1]), np.array(bins.edges[1:])
        if column.is_whole:  # whole numbers of a bin, as if all of them reached to the next
            lows, highs = np.ceil(lows), np.append(np.ceil(highs[:-1]), column.low_high[1] + 1)
        places = np.clip(codes, 1, len(lows)) - 1
        values = lows[places] + rng.random(len(codes)) * (highs - lows)[places]
        found = np.where(codes == 0, np.nan, np.floor(values) if column.is_whole else values)
    return found if column.nullable else np.asarray(pd.Series(found).infer_objects())
