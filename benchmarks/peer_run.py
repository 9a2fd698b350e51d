"""A peer's part of peers.py, for the peer's own environment, which has pandas but not this project.

    PYTHON_OF_THE_PEER peer_run.py FOLDER

FOLDER holds codes.parquet and job.json, and gets made.parquet.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd


def privbayes(codes: pd.DataFrame, job: dict) -> pd.DataFrame:
    """PrivBayes by dpmm, which is its network with Gaussian noise."""
    from dpmm.pipelines.priv_bayes import PrivBayesPipeline

    pipeline = PrivBayesPipeline(
        epsilon=job["epsilon"], delta=job["delta"], disable_processing=True, n_jobs=1, gen_kwargs={"n_iters": 500}
    )
    pipeline.fit(codes, domain=job["domain"], random_state=job["seed"])
    return pipeline.generate(n_records=len(codes), random_state=job["seed"])


def dp_gan(codes: pd.DataFrame, job: dict) -> pd.DataFrame:
    """DP-GAN by SmartNoise as it comes: one-hot codes, of which it takes those that it sees."""
    import torch
    from snsynth import Synthesizer

    torch.manual_seed(job["seed"])
    gan = Synthesizer.create("dpgan", epsilon=job["epsilon"], delta=job["delta"])
    gan.fit(codes, categorical_columns=list(codes.columns))
    return gan.sample(len(codes))


def main() -> None:
    """Run the peer that the job names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    job = json.loads((folder / "job.json").read_text())
    peer = {"privbayes": privbayes, "dp-gan": dp_gan}[job["peer"]]
    made = peer(pd.read_parquet(folder / "codes.parquet"), job)
    made.astype("int64").reset_index(drop=True).to_parquet(folder / "made.parquet")


if __name__ == "__main__":
    main()
