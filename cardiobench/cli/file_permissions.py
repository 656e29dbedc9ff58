"""Reject settings files with settings that are only allowed on the command line."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from cardiobench.core.config import RunConfig, ScoreConfig, Settings, default_of, flag_of, settings_of
from cardiobench.core.errors import BadConfig, CardioBenchError, first_n
from cardiobench.core.setting import parse_options
from cardiobench.protocols import protocol_class
from cardiobench.protocols.options import in_file

_SHOWN = 100  # Maximum number of characters of a flag and its value in messages.


def check_permissions(path: Path, values: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Check that a settings file contains no setting that is only allowed on the command line.

    Args:
        path: Path of the file.
        values: Settings in the file.
        flags: Settings from the command line, which take precedence.

    Returns:
        Settings of the file, without an `output_dir` that points to the results folder containing the file.

    Raises:
        BadConfig: The file has a forbidden setting; the message lists the flags to repeat.
    """
    values = {name: value for name, value in values.items() if name not in flags or name == "options"}
    refused = [
        flag if len(flag) <= _SHOWN else f"{flag[:_SHOWN]}..."
        for flag in map(
            shlex.join,
            [*flags_to_repeat(path, values), *_refused_options(values.get("options"), flags.get("options"))],
        )
    ]
    if refused:
        raise BadConfig(
            f"{path} sets {first_n(refused, 20)}, and settings files may not run code, use the network, write elsewhere or publish: "
            "read the file, then give these settings on the command line."
        )
    return values


def flags_to_repeat(path: Path, values: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield settings in the file that are only allowed on the command line, each as flag and values."""
    for name, value in values.items():
        kind: type[Settings] = RunConfig if name in settings_of(RunConfig) else ScoreConfig
        if name not in settings_of(kind):
            continue  # `make_config` rejects this value.
        try:
            checked = TypeAdapter(get_type_hints(kind, include_extras=True)[name]).validate_python(value)
        except ValidationError:
            continue  # Characters of a field and its value.
        allowed = settings_of(kind)[name].in_file
        if checked == default_of(kind, name) or (allowed(checked) if callable(allowed) else allowed):
            continue
        if name == "output_dir" and checked.absolute() == _results_folder(path):
            continue
        yield _as_flag(flag_of(kind, name), checked)


def _results_folder(path: Path) -> Path | None:
    """Return the results folder of a file at `<folder>/runs/<digest>/run.yaml`."""
    parents = path.absolute().parents
    return parents[2] if len(parents) > 2 and parents[1].name == "runs" else None


def _refused_options(options: Any, given: Any) -> Iterator[list[str]]:
    try:
        in_the_file, repeated = parse_options(options or {}), parse_options(given or {})
    except ValueError:
        return  # `make_config` rejects this value.
    if not isinstance(in_the_file, Mapping):
        return
    for name, chosen in in_the_file.items():
        if not isinstance(chosen, Mapping):
            continue
        for option, value in chosen.items():
            if option not in repeated.get(name, {}) and not _option_in_file(str(name), str(option)):
                yield _as_flag("--option", f"{name}.{option}={value}")


def _option_in_file(name: str, option: str) -> bool:
    try:
        return in_file(protocol_class(name), option)
    except CardioBenchError:
        return True  # The run rejects unknown protocols and options.


def _as_flag(flag: str, value: Any) -> list[str]:
    """Return a setting as command-line flag and values with control characters escaped."""
    if value is True:
        return [flag]
    texts = map(str, value if isinstance(value, tuple) else (value,))
    return [flag, *(text if text.isprintable() else ascii(text)[1:-1] for text in texts)]
