"""ECGs in EDF and BDF, read by edfio; leads, rates and units come from the header."""

import re
from pathlib import Path

import numpy as np

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.channels import Channels
from cardiobench.data.media.file import COPY_AGAIN, refuse_special
from cardiobench.data.media.limits import check_size
from cardiobench.data.media.optional import require
from cardiobench.data.media.types import LEADS

COMPONENT = "reader edf"
VERSION = 1

_TYPE = re.compile(r"^(?:ECG|EKG)[ _-]+(?:lead[ _-]+)?", re.IGNORECASE)
_KNOWN = {lead.lower() for lead in LEADS}


def read_edf_ecg(path: Path) -> Channels:
    """Read the channels of an EDF, EDF+ or BDF file whose labels are leads, such as `V1`, or `ECG V1` in EDF+.

    Raises:
        BadMedia: The file is damaged or cut short, has no lead, or has leads with different rates.
        MissingExtra: The package edfio is not installed.
    """
    edfio = require("edfio", "reading EDF")
    try:
        refuse_special(path)
        check_size(str(path), 4 * path.stat().st_size)
        with path.open("rb") as stream:
            content = stream.read()
        file = edfio.read_edf(content)
        chosen = [(name, one) for one in file.signals if (name := _TYPE.sub("", one.label.strip())).lower() in _KNOWN]
        if not chosen:
            raise BadMedia(
                f"{path} has no lead among its channels {', '.join(one.label for one in file.signals)}. {COPY_AGAIN}"
            )
        rates = {float(one.sampling_frequency) for _, one in chosen}
        if len(rates) > 1:
            raise BadMedia(
                f"{path} has leads at {', '.join(f'{rate:g}' for rate in sorted(rates))} Hz. Export all leads at the same rate."
            )
        signal = np.stack([one.data for _, one in chosen], axis=1)
        units = tuple(one.physical_dimension for _, one in chosen)
    except (
        OSError,
        AttributeError,
        EOFError,
        IndexError,
        KeyError,
        OverflowError,
        TypeError,
        ValueError,
        ZeroDivisionError,
    ) as error:
        raise BadMedia(f"{path} cannot be read as EDF ({' '.join(str(error).split())[:200]}). {COPY_AGAIN}") from error
    return Channels(signal, tuple(name for name, _ in chosen), rates.pop(), units)
