"""An encoder that was learnt from private images, with the plan and the facts that its certificate follows from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from understudy.errors import InputError
from understudy.files import canonical_sha256, read_json
from understudy.networks.public import DOCUMENT, WEIGHTS, Encoder, PublicNetwork, document_of, load_encoder, weights_of
from understudy.plan.encoder import ExtractorPlan, extractor_plan_from_dict
from understudy.released.assumptions import GRADIENTS
from understudy.released.certificate import trained_certificate
from understudy.released.product import Facts, product_files
from understudy.released.verify import Verification, verify_trained

METHOD = "encoder of images, by noisy descent"
WORDS = {
    "post_processing": "What the encoder makes of public images costs nothing more. A release of what it makes of the "
    "private ones has a cost of its own, and its certificate counts both.",
    "intended_use": "Taking features of images for releases (dp-mepf), where no public images are to be had.",
    "not_for": "Finding out about one of the images it was trained on.",
}


def encoder_certificate(plan: ExtractorPlan, facts: dict[str, Any], *, fingerprint: str) -> dict[str, Any]:
    """All statements about an encoder; they follow from its plan alone."""
    return trained_certificate(
        plan,
        facts,
        fingerprint=fingerprint,
        method=METHOD,
        mechanism="Discrete Gaussian noise on exact integer sums of clipped gradients",
        stages=[],
        numbers=plan.num_parameters,
        settings=asdict(plan.training),
        further=[("row independence of gradients", GRADIENTS.format("anything was charged"))],
        words=WORDS,
    )


@dataclass(frozen=True)
class PrivateEncoder:
    """An encoder as a product of private rows. ``facts`` are the public circumstances of the training."""

    plan: ExtractorPlan
    encoder: Encoder
    facts: Facts

    @property
    def is_private(self) -> bool:
        """Whether its noise was real."""
        return bool(dict(self.facts).get("is_private"))

    def network(self, name: str) -> PublicNetwork:
        """The network that it makes, for plans."""
        return self.encoder.network(name)

    def to_dict(self) -> dict[str, Any]:
        """The encoder without its weights; it holds their hash."""
        return document_of(self.encoder) | {"format": 2, "plan": self.plan.to_dict(), "facts": dict(self.facts)}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over everything released; the ledger keeps it."""
        return canonical_sha256(self.to_dict())

    def files(self) -> dict[str, bytes]:
        """Every file of the directory."""
        certificate = encoder_certificate(self.plan, dict(self.facts), fingerprint=self.fingerprint)
        document, tensors = (DOCUMENT, self.to_dict()), (WEIGHTS, weights_of(self.encoder))
        return product_files(self.plan.schema, certificate, document=document, tensors=tensors)


def load_private_encoder(directory: str | Path) -> PrivateEncoder:
    """Read an encoder back with what its certificate follows from."""
    encoder, folder = load_encoder(directory), Path(directory)
    if encoder.private_cost is None:
        raise InputError(
            f"encoder '{folder}'",
            "is public: no private rows were read for it, and it has no certificate",
            "Give the directory of a release, of a classifier, or one made by: understudy encoder private",
        )
    try:
        document = read_json(folder / DOCUMENT)
        plan = extractor_plan_from_dict(document["plan"])
        facts = tuple(document["facts"].items())
        found = PrivateEncoder(plan, encoder, facts)
        whole = plan.form == encoder.form and encoder.private_cost["is_private"] == found.is_private
    except Exception:  # files may say anything
        whole = False
    if not whole:
        raise InputError(
            f"encoder '{folder}'",
            "is damaged, or of an earlier version, which made no certificates",
            "Fetch it again, or learn it anew: understudy encoder private",
        )
    return found


def verify_encoder(directory: str | Path) -> Verification:
    """Recompute what the certificate states and compare every byte.

    Raises:
        InputError: it names the first file that does not follow from the encoder.
    """
    made = load_private_encoder(directory)
    try:
        follows = made.plan.cost(dict(made.facts)) == made.encoder.private_cost
    except Exception:  # files may say anything
        follows = False
    if not follows:
        raise InputError(
            f"encoder '{Path(directory)}'", "states a cost that does not follow from its plan", "Do not rely on it"
        )
    return verify_trained(made, made.plan.descent, directory, what="encoder")
