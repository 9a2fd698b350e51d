"""What leaves the building: the noisy vectors, their certificate, and how to check them."""

from understudy.released.certificate import build_certificate
from understudy.released.release import Release, load_release, save_release
from understudy.released.verify import Verification, verify_release

__all__ = ["Release", "Verification", "build_certificate", "load_release", "save_release", "verify_release"]
