"""Recordings in canonical form: `Clip` (uint8 RGB frames) and `Ecg` (12 leads in mV)."""

from cardiobench.data.media.clip import read_clip
from cardiobench.data.media.ecg import read_ecg
from cardiobench.data.media.row import decode
from cardiobench.data.media.types import LEADS, METADATA, Clip, Ecg, FrameSampling

__all__ = ["LEADS", "METADATA", "Clip", "Ecg", "FrameSampling", "decode", "read_clip", "read_ecg"]
