"""Decoding of the recording in a dataset row."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadMedia
from cardiobench.data.media.clip import EVERY_FRAME, read_clip
from cardiobench.data.media.content import note_array
from cardiobench.data.media.signal import twelve_leads
from cardiobench.data.media.types import Clip, Ecg, FrameSampling


def decode(row: Mapping[str, Any], sampling: FrameSampling | None = None) -> Clip | Ecg:
    """Decode the `video`, `image` or `ecg` of a dataset row.

    Args:
        row: `video` or `image` as {"path", "bytes"}, where bytes take precedence, and optionally `key_frame`; or `ecg`,
            (samples, 12) in mV, with `fs` in Hz.
        sampling: Frames of a clip; by default all. ECGs are always complete.

    Raises:
        BadMedia: The recording cannot be read, or the row has none.
    """
    name = str(row.get("id") or "row without id")
    if row.get("ecg") is not None:
        if row.get("fs") is None:
            raise BadMedia(f"{name} has an `ecg` without its sampling rate `fs`. Add the column to the dataset.")
        ecg = twelve_leads(row["ecg"], row["fs"], name)
        note_array(ecg.signal, repr(ecg.fs))
        return ecg
    media = row.get("video") or row.get("image")
    if not isinstance(media, Mapping) or (media.get("bytes") is None and not media.get("path")):
        raise BadMedia(f"{name} has neither `video`, `image` nor `ecg`. Columns: {', '.join(map(str, row))}.")
    path, content = media.get("path"), media.get("bytes")
    return read_clip(
        Path(str(path)) if content is None else content,
        sampling or EVERY_FRAME,
        key_frame=_key_frame(row, name),
        name=str(path or name),
    )


def _key_frame(row: Mapping[str, Any], name: str) -> int:
    """Return the key frame of a row; 0 if it is null, which is NaN in a numeric column."""
    value = row.get("key_frame")
    if value is None or value != value:
        return 0
    if value != int(value):
        raise BadMedia(f"{name}: key frame {value}; expected a whole number. Correct the dataset's table.")
    return int(value)
