"""What leaves the building: the noisy vectors, their certificate, and how to check them."""

from understudy.published.certificate import build_certificate
from understudy.published.release import Release, load_release, save_release
from understudy.published.verify import Verification, verify_release

__all__ = ["Release", "Verification", "build_certificate", "load_release", "save_release", "verify_release"]
