"""Translate settings of the last release: flags, keywords and stored `run.yaml` fields.

Settings are translated for one release. To end this, empty `OLD`; no other code refers to them.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cardiobench.core.config import RunConfig, flag_of, make_config
from cardiobench.core.config_file import merge
from cardiobench.core.setting import parse_options
from cardiobench.protocols import choose

Spelled = Callable[[Any], dict[str, Any]]


def _options(*names: str) -> Spelled:
    """Return a function that translates values to protocol options."""
    return lambda value: {"options": parse_options([f"{name}={json.dumps(value)}" for name in names])}


@dataclass(frozen=True)
class OldSetting:
    """Setting of the last release.

    Attributes:
        default: Value in stored files if the user set nothing; it needs no translation.
        metavar: Placeholder for the flag's value.
        spelled: Function from value to equivalent current settings.
        several: Whether the flag accepts several values.
    """

    default: Any
    metavar: str
    spelled: Spelled
    several: bool = False


GRIDS = _options("cross_validation.grids", "representation.grids", "confound.grids")
CLASSIFIERS = _options("cross_validation.classifiers", "representation.classifiers")
PATIENTS = _options("stress.patients")

OLD: dict[str, OldSetting] = {
    "share": OldSetting(0.2, "P", _options("zero_shot.share")),
    "stress_patients": OldSetting(30, "N", lambda number: PATIENTS(number or None)),
    "sizes": OldSetting([], "SIZE", _options("cross_validation.sizes"), several=True),
    "classifiers": OldSetting([], "NAME", CLASSIFIERS, several=True),
    "grids": OldSetting(None, "FILE", GRIDS),
    "views": OldSetting("all", "WHICH", lambda which: {"conditions": [f"{which}_views"]}),
}


NEXT = "The next release will no longer accept it."


def translate(
    values: Mapping[str, Any], request: Mapping[str, Any], *, stored: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Return settings in the current spelling, and a line about each old one.

    Options only apply to selected protocols, because others would reject them. Current spellings take precedence.

    Args:
        values: Mapping from field to unvalidated value.
        request: Settings that name the suite or the protocols of the run.
        stored: Whether the values come from a stored file, which contains all settings; defaults are then ignored
            silently.

    Raises:
        BadConfig: The protocols or options are invalid.
    """
    today = {name: value for name, value in values.items() if name not in OLD}
    lines = []
    for name in OLD.keys() & values.keys():
        value = _plain(values[name])
        if value == OLD[name].default:
            left_out = f"{flag(name)} {_text(value)} is deprecated; leave it out, it is the default. {NEXT}"
            lines += [] if stored else [left_out]
            continue
        spelled = OLD[name].spelled(value)
        if "options" in spelled:
            run = _protocols(request)
            spelled["options"] = {
                protocol: chosen for protocol, chosen in spelled["options"].items() if protocol in run
            }
        flags = shlex.join(_as_flags(spelled))
        advice = f"use {flags}" if flags else "no protocol of this run uses it"
        lines.append(f"{flag(name)} {_text(value)} is deprecated; {advice}. {NEXT}")
        today = merge(spelled, today)
    return today, sorted(lines)


def flag(name: str) -> str:
    """Return the flag of an old setting."""
    return f"--{name.replace('_', '-')}"


def _protocols(request: Mapping[str, Any]) -> tuple[str, ...]:
    from cardiobench.scoring.suites import load_suite

    named = {name: request[name] for name in ("suite", "protocols") if name in request}
    config = make_config(RunConfig, named, flags=True)
    return tuple(load_suite(config.suite).protocols) if config.suite else choose(config.protocols)


def _plain(value: Any) -> Any:
    """Parse the text of a flag as JSON, or keep it as a word."""
    if isinstance(value, (list, tuple)):
        return list(value)
    try:
        return json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        return value


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _as_flags(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if name != "options":
            yield from (flag_of(RunConfig, name), *map(str, value))
            continue
        for protocol, chosen in value.items():
            for option, wanted in chosen.items():
                one = wanted[0] if isinstance(wanted, list) and len(wanted) == 1 else wanted
                yield from ("--option", f"{protocol}.{option}={one if isinstance(one, str) else json.dumps(one)}")
