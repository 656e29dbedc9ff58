"""Sketch of an ECG with fewer leads: computed limb leads, and zeros."""

from pathlib import Path

from cardiobench.data.media.leads import keep_leads
from tests.versions.case import plain
from tests.versions.models import ecg


def kept(folder: Path) -> list:
    """Return computed limb leads, and leads of zeros."""
    return [keep_leads(ecg(), leads).signal[::5] for leads in (("I", "II", "V1"), ("II", "V5"))]


CASES = {"fewer leads": plain(kept, "leads")}
