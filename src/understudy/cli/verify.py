"""The verb verify: do the files of a release fit one another, the accounting and the noise?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.output import Outcome, facts

if TYPE_CHECKING:
    from understudy.released import Verification


def verify(
    release: Annotated[Path, typer.Argument(help="Directory of a release, of a classifier, or of a private encoder.")],
) -> Outcome:
    """Check that the files of a release fit one another, the accounting and noise; not that noise was really drawn."""
    from understudy.classifier.model import is_classifier, verify_classifier
    from understudy.networks.public import is_encoder
    from understudy.released import verify_release
    from understudy.released.encoder import verify_encoder
    from understudy.released.verify import NOISE

    if is_classifier(release):
        found = verify_classifier(release)
    elif is_encoder(release):
        found = verify_encoder(release)
    else:
        found = verify_release(release)
    status = "[bold green]Consistent[/bold green]" if found.is_private else "[bold red]NOT PRIVATE[/bold red]"
    guarantee = f"epsilon {found.epsilon:.6g} at delta {found.delta:g} ({found.neighbours})"
    alone = f"this release {found.epsilon_alone:.6g}, the rest the encoder that it was made with"
    named = {
        "of which": alone if found.epsilon != found.epsilon_alone else None,
        "sensitivity": ", ".join(f"{value:.6f}" for value in found.sensitivity),
        "noise": ", ".join(f"{value:.6f}" for value in found.noise_std),
        "seen": [
            f"stage '{test.stage}': {test.test} of {test.looked_at} of {test.of} numbers are as with noise"
            for test in found.noise_tests
            if test.is_able
        ],
        "not seen": _not_seen(found),
        "fingerprint": found.fingerprint,
        "files": ", ".join(name for name in found.checks if name != NOISE),
    }
    lines = [
        f"{status}: by its files {guarantee}, {found.mechanism} noise",
        *facts(named),
        f"This says: {found.meaning}.",
        "Compare the fingerprint with the one that the owner gives you.",
        f"It rests on what the certificate assumes: {'; '.join(found.assumptions)}.",
    ]
    return found.to_dict(), lines


def _not_seen(found: Verification) -> str | None:
    """Of which numbers nothing tells whether they have noise."""
    if found.untested:
        stages = ", ".join(f"'{stage}'" for stage in found.untested)
        return f"stage {stages}: without noise its numbers would look alike"
    if not found.noise_tests and found.is_private:
        return "noise: what was learnt holds no sums that could be tested"
    return None
