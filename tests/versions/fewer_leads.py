"""Fewer leads of an ECG: those that follow from others, and zeros."""

from pathlib import Path

from cardiobench.data.media.leads import keep_leads
from tests.versions.case import plain
from tests.versions.models import ecg


def kept(folder: Path) -> list:
    """Limb leads that are computed, and leads that are zero."""
    return [keep_leads(ecg(), leads).signal[::5] for leads in (("I", "II", "V1"), ("II", "V5"))]


CASES = {"fewer leads": plain(kept, "leads")}
