"""Limits on the decoded size of a recording, checked before allocation because headers may be wrong."""

import math
import os

from cardiobench.core.errors import BadData, BadMedia

LIMIT_VARIABLE = "CARDIOBENCH_MAX_RECORDING_MB"
DEFAULT_LIMIT_MB = 2048
"""Default limit in MB of decoded data; a colour cine of 1,000 frames of 600 x 800 pixels has 1,440."""
RATES = (10.0, 100_000.0)
"""Minimum and maximum sampling rate of an ECG, Hz."""


def max_bytes() -> int:
    """Return the limit from the environment variable CARDIOBENCH_MAX_RECORDING_MB, else the default.

    Raises:
        BadData: The variable is not a positive number.
    """
    text = os.environ.get(LIMIT_VARIABLE, "")
    try:
        limit = float(text) if text else float(DEFAULT_LIMIT_MB)
    except ValueError:
        limit = math.nan
    if not 0 < limit < math.inf:
        raise BadData(f"{LIMIT_VARIABLE} is {text!r}; expected a number of MB above 0.")
    return int(limit * 1_000_000)


def set_limit(megabytes: float) -> None:
    """Set the limit for this process and its child processes."""
    os.environ[LIMIT_VARIABLE] = repr(megabytes)


def check_size(name: str, size: float) -> None:
    """Refuse a recording that would take more memory than the limit.

    Args:
        name: Name of the recording in messages.
        size: Bytes needed for decoding.

    Raises:
        BadMedia: The size exceeds the limit.
    """
    limit = max_bytes()
    if size > limit:
        raise BadMedia(
            f"{name} would take {size / 1e6:,.0f} MB when decoded, but the limit is {limit / 1e6:,.0f} MB. "
            f"Remove it from the dataset's table, or raise --max-recording-mb ({LIMIT_VARIABLE}) if it is really that large."
        )
