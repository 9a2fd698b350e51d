"""The verb verify: do the files of a release fit one another, the accounting and the noise?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli import options as opt
from understudy.cli.output import emit, verbatim

if TYPE_CHECKING:
    from understudy.released import Verification


def verify(
    release: Annotated[Path, typer.Argument(help="Directory of a release, of a classifier, or of a private encoder.")],
    as_json: opt.AsJson = False,
) -> None:
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
    lines = [
        f"{status}: by its files epsilon {found.epsilon:.6g} at delta {found.delta:g} "
        f"({found.neighbours}), {found.mechanism} noise",
        *_alone(found),
        f"  sensitivity  {', '.join(f'{value:.6f}' for value in found.sensitivity)}",
        f"  noise        {', '.join(f'{value:.6f}' for value in found.noise_std)}",
        *_noise_lines(found),
        f"  fingerprint  {found.fingerprint}",
        f"  files        {', '.join(name for name in found.checks if name != NOISE)}",
        f"This says: {found.meaning}.",
        "Compare the fingerprint with the one that the owner gives you.",
    ]
    lines.append(f"It rests on what the certificate assumes: {'; '.join(found.assumptions)}.")
    emit(found.to_dict(), lines, as_json=as_json)


def _noise_lines(found: Verification) -> list[str]:
    """What was seen of noise, stage by stage."""
    lines = [
        f"  seen         stage '{verbatim(test.stage)}': {test.test} of {test.looked_at} of {test.of} numbers "
        "are as with noise"
        for test in found.noise_tests
        if test.is_able
    ]
    untested = ", ".join(f"'{verbatim(stage)}'" for stage in found.untested)
    if untested:
        lines.append(f"  not seen     stage {untested}: without noise its numbers would look alike")
    if not found.noise_tests and found.is_private:
        lines.append("  not seen     noise: what was learnt holds no sums that could be tested")
    return lines


def _alone(found: Verification) -> list[str]:
    """What a release costs beside a network that was learnt from the same rows before."""
    if found.epsilon == found.epsilon_alone:
        return []
    return [f"  of which     this release {found.epsilon_alone:.6g}, the rest the encoder that it was made with"]
