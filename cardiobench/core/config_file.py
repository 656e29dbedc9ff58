"""Settings from a YAML file, combined with flags."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from cardiobench.core.config import RunConfig, make_config
from cardiobench.core.errors import BadConfig

MOST_BYTES = 1_000_000
MOST_ENTRIES = 10_000


def read_config(path: str | Path) -> dict[str, Any]:
    """Read settings from a YAML file without validation; `make_config` validates them.

    Raises:
        BadConfig: There is no such file, it is not a YAML mapping, or it is too large for settings.
    """
    if not Path(path).exists():
        raise BadConfig(
            f"there is no file {path}. Give a file of settings, such as a run.yaml below runs/ of a results folder."
        )
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes, too many for settings")
        values = yaml.safe_load(content.decode("utf-8"))
        # YAML aliases repeat their anchors, so a short file can expand to billions of entries.
        if sum(1 for _, _ in zip(_entries(values), range(MOST_ENTRIES + 1), strict=False)) > MOST_ENTRIES:
            raise ValueError(f"it expands to more than {MOST_ENTRIES:,} entries, too many for settings")
    except (
        OSError,
        ValueError,
        RecursionError,
        yaml.YAMLError,
    ) as error:  # ValueError: invalid UTF-8, or a number with thousands of digits.
        reason = getattr(error, "strerror", None) or getattr(error, "problem", None) or error
        raise BadConfig(
            f"{path} cannot be read as YAML: {reason}. Give a file of settings, such as a run.yaml below runs/ of a results folder."
        ) from error
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        kind = "names that are not text" if isinstance(values, dict) else f"a {type(values).__name__}"
        raise BadConfig(f"{path} contains {kind}; expected a mapping of settings such as 'models: [org/name]'")
    if "schema" in values and "stamp" in values:
        raise BadConfig(f"{path} is a result, not settings. Give the run.yaml below runs/ of the same results folder.")
    return values


def _entries(value: Any) -> Iterator[Any]:
    """Yield a value and all nested values, once per reference."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, (list, tuple, set)):
            waiting += one


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge settings into others; options of protocols are merged one by one, everything else is replaced.

    Raises:
        BadConfig: Options are not a mapping of protocols to mappings.
    """
    merged = {**base, **over}
    if "options" in base and "options" in over:
        options, above = (make_config(RunConfig, {"options": one["options"]}).options for one in (base, over))
        merged["options"] = {**options, **{name: {**options.get(name, {}), **above[name]} for name in above}}
    return merged
