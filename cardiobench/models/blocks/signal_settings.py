"""Input format of ECG models with their own code: rate, length, leads, scale and layout."""

from dataclasses import fields
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from cardiobench.data.media.types import LEADS
from cardiobench.models.stated import Stated

POOLINGS = ("mean", "max", "last", "tokens")
"""Poolings of the network's tokens; for a network with a single vector they are equal."""


def known_lead(name: str) -> str:
    """Return the canonical name of a lead; raises `ValueError` for an unknown name."""
    if name not in LEADS:
        raise ValueError(f"no lead '{name}'; expected one of {' '.join(LEADS)}")
    return name


def _names(value: Any) -> Any:
    """Split names that are separated by commas, as in `leads=I,II,V1` on the command line."""
    return tuple(value.split(",")) if isinstance(value, str) else value


Lead = Annotated[str, AfterValidator(known_lead)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class SignalSettings:
    """Input format of a network for ECGs.

    Attributes:
        fs: Sampling rate in Hz; records are resampled.
        seconds: Length of a part in seconds.
        leads: Names from `cardiobench.data.media.types.LEADS` in the order of the network; also as text with commas.
        scale: Units per millivolt (1: mV, 1000: microvolt), or "standardise": each lead to mean 0 and deviation 1.
        layout: "leads_first" (leads, samples) or "time_first" (samples, leads).
        length: "crop" for the middle of a longer record; "windows" for consecutive parts, whose vectors are averaged.
            Shorter records are surrounded or followed by zeros, respectively.
    """

    fs: Annotated[float, Field(gt=0, le=2000)]
    seconds: Annotated[float, Field(gt=0, le=600)] = 10.0
    leads: Annotated[tuple[Lead, ...], Field(min_length=1), BeforeValidator(_names)] = LEADS
    scale: Annotated[float, Field(gt=0)] | Literal["standardise"] = 1.0
    layout: Literal["leads_first", "time_first"] = "leads_first"
    length: Literal["crop", "windows"] = "crop"

    def __call__(self, signal: np.ndarray, fs: float) -> np.ndarray:
        """Return the parts (P, leads, samples) or (P, samples, leads) of a signal (samples, 12) in millivolts."""
        from cardiobench.data.media.resample import resample
        from cardiobench.models.signal import fit_length, standardise, windows

        signal = resample(signal[:, [LEADS.index(lead) for lead in self.leads]], fs, self.fs)
        signal = standardise(signal) if self.scale == "standardise" else signal * self.scale
        samples = round(self.fs * self.seconds)
        parts = fit_length(signal, samples)[None] if self.length == "crop" else windows(signal, samples)
        return parts.transpose(0, 2, 1) if self.layout == "leads_first" else parts


SIGNAL_KEYS = tuple(field.name for field in fields(SignalSettings))


def signal_settings(stated: Stated, name: str) -> SignalSettings | None:
    """Read the settings from those that are stated for a model; None for a model of frames.

    Raises:
        BadModel: A value is invalid, or the rate of the signal is missing.
    """
    chosen = {key: stated[key] for key in SIGNAL_KEYS if key in stated}
    if not chosen:
        return None
    try:
        return SignalSettings(**chosen)
    except ValidationError as error:
        raise stated.refused(name, error) from None
