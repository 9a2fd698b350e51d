"""A peer's part of peers.py, for the peer's own environment, which has pandas but not this project.

    PYTHON_OF_THE_PEER peer_run.py FOLDER

FOLDER holds codes.parquet and job.json, and gets made.parquet.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

DPMM = {
    "privbayes": ("PrivBayesPipeline", 500),  # its network, with Gaussian noise
    "aim": ("AIMPipeline", 300),
    "mst": ("MSTPipeline", 500),
}
"""By peer: its pipeline and the steps of a fit, which are fewer than its 1,000 for time."""


def by_dpmm(codes: pd.DataFrame, job: dict) -> pd.DataFrame:
    """PrivBayes, AIM or MST by dpmm, on codes as they are."""
    from dpmm import pipelines

    name, steps = DPMM[job["peer"]]
    pipeline = getattr(pipelines, name)(
        epsilon=job["epsilon"],
        delta=job["delta"],
        disable_processing=True,
        max_model_size=8,  # MB; of AIM's junction tree
        n_jobs=1,
        gen_kwargs={"n_iters": steps},
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
    run = by_dpmm if job["peer"] in DPMM else dp_gan
    made = run(pd.read_parquet(folder / "codes.parquet"), job)
    made.astype("int64").reset_index(drop=True).to_parquet(folder / "made.parquet")


if __name__ == "__main__":
    main()
