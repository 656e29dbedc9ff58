"""Create flags from settings classes, and a parser that suggests the closest flag."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from cardiobench.core.config import RunConfig, Settings, default_of, flag_of, settings_of
from cardiobench.core.registry import nearest
from cardiobench.core.setting import GROUPS


class Parser(argparse.ArgumentParser):
    """An `argparse` parser without abbreviations, whose error messages suggest similar flags.

    Attributes:
        short: Names of the flags in the output of `--help`, which `--help-all` completes; empty for all.
        short_epilog: Text at its end.
        groups: Mapping from heading to the commands below it; empty for a parser without commands.
    """

    def __init__(self, **settings: Any):
        self.short: frozenset[str] = frozenset()
        self.short_epilog = ""
        self.groups: dict[str, list[str]] = {}
        settings = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False, **settings}
        super().__init__(**settings)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> argparse.Namespace:  # type: ignore[override] # noqa: D102
        arguments: argparse.Namespace
        arguments, unknown = self.parse_known_args(args, namespace)
        if unknown:
            text = next((text for text in unknown if text.startswith("-")), unknown[0])
            getattr(arguments, "parser", self).refuse(text)
        return arguments

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override] # noqa: D102
        given = list(sys.argv[1:] if args is None else args)
        # Report an unknown flag before a missing one, because it may be a misspelling; flags after a command are its own.
        end = (given.index("--") if "--" in given else None) if self._subparsers is None else 1
        for text in given[:end]:
            if re.match(r"--\w[\w-]*(=|$)", text) and text.partition("=")[0] not in self._option_string_actions:
                self.refuse(text)
        return super().parse_known_args(given, namespace)

    def print_help(self, file: Any = None) -> None:
        """Print the help, with the most frequent flags only if there are many."""
        self._print_message(self._help_text(self.short, self.short_epilog or self.epilog), file or sys.stdout)

    def format_help(self) -> str:
        """Return the help of all flags and commands."""
        return self._help_text(frozenset(), self.epilog)

    def _help_text(self, shown: frozenset[str], epilog: str | None) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for group in self._action_groups:
            actions = [one for one in group._group_actions if not shown or one.dest in shown]
            commands = [one for one in actions if isinstance(one, argparse._SubParsersAction) and self.groups]
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments([one for one in actions if one not in commands])
            formatter.end_section()
            for title, names in self.groups.items() if commands else ():
                formatter.start_section(title)
                formatter.add_arguments([one for one in commands[0]._choices_actions if one.dest in names])
                formatter.end_section()
        formatter.add_text(epilog)
        return formatter.format_help()

    def refuse(self, text: str) -> NoReturn:
        """Exit with a message about an unknown flag and the closest match, or about an argument without a flag."""
        flag = text.partition("=")[0]
        if not flag.startswith("-"):
            with_value = [name for name, action in self._option_string_actions.items() if action.nargs != 0]
            model = next((name for name in ("--model", "--models") if name in with_value), "")
            self.error(f"unexpected argument '{text[:60]}'." + (f" A model follows {model}." if model else ""))
        known = [name.removeprefix("--") for name in self._option_string_actions if name.startswith("--")]
        near = nearest(flag.lstrip("-"), known)
        self.error(f"no flag '{flag}'." + (f" Did you mean '--{near}'?" if near else ""))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = list(map(str, action.choices))
        if isinstance(action, argparse._SubParsersAction):
            near = nearest(value, known)
            raise argparse.ArgumentError(
                None, f"no command '{value[:60]}'." + (f" Did you mean '{near}'?" if near else "")
            )
        raise argparse.ArgumentError(action, f"'{str(value)[:60]}' is not one of {', '.join(known)}")

    def error(self, message: str) -> NoReturn:  # noqa: D102
        listed = "flags" if self._subparsers is None else "commands"
        flag = "--help-all" if self.short else "--help"
        sys.stderr.write(f"{self.prog}: error: {message}\n({self.prog} {flag} lists all {listed})\n")
        raise SystemExit(2)


def add_settings(parser: argparse.ArgumentParser, *kinds: type[Settings]) -> None:
    """Add a flag for each field of the classes; the namespace holds the given ones under their field names."""
    hints = {kind: get_type_hints(kind) for kind in kinds}
    for group in GROUPS:
        box = parser.add_argument_group(group)
        kinds_of = {
            name: kind for kind in kinds for name, setting in settings_of(kind).items() if setting.group == group
        }
        for name, kind in kinds_of.items():
            setting, default = settings_of(kind)[name], default_of(kind, name)
            shown = f" (default: {default})" if default or (default == 0 and default is not False) else ""
            box.add_argument(
                flag_of(kind, name),
                dest=name,
                default=argparse.SUPPRESS,
                help=(setting.help + ("" if "(default" in setting.help else shown)).replace("%", "%%"),
                **_shape(hints[kind][name], setting.metavar),
            )


def _shape(annotation: Any, metavar: str | None) -> dict[str, Any]:
    """Return `argparse` options for a value type; the settings class validates values."""
    origin, members = get_origin(annotation), get_args(annotation)
    if annotation is bool:
        return {"action": "store_true"}
    if origin is Literal:
        return {"choices": members}
    if origin in (tuple, Mapping):
        return {"nargs": "+", "action": "extend", "metavar": metavar}
    return {"metavar": metavar}


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of integers from `low` to `high`."""

    def read(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,18}", text.strip()) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text[:60]!r} is not a whole number from {low} to {high}")
        return int(text)

    return read


SEED = whole_number(0, 2**32 - 1)


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the flags shared by all commands."""
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default=argparse.SUPPRESS,
        help="level of the libraries' messages on standard error",
    )


def add_results(parser: argparse.ArgumentParser) -> None:
    """Add the argument of commands that read folders of results."""
    parser.add_argument(
        "results",
        type=Path,
        nargs="*",
        default=[Path("results")],
        metavar="RESULTS",
        help="folders of results (default: results)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the flag of commands that can write their content as JSON."""
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def add_short_help(parser: Parser, shown: Iterable[str], epilog: str) -> None:
    """Limit `--help` to some flags and an epilog, and add `--help-all` for all of them.

    Args:
        parser: Parser with many flags.
        shown: Names of the flags in the namespace.
        epilog: Text at the end of the short help.
    """
    parser.add_argument("--help-all", action=_HelpAll, nargs=0, help="show all flags, with more examples, and exit")
    parser.short, parser.short_epilog = frozenset((*shown, "help", "help_all")), epilog


def add_folders(parser: argparse.ArgumentParser) -> None:
    """Add flags for additional user folders, unless the command has all run settings."""
    for name in ("datasets_dir", "models_dir"):
        setting, flag = settings_of(RunConfig)[name], flag_of(RunConfig, name)
        if flag in parser._option_string_actions:
            continue
        parser.add_argument(flag, type=Path, default=argparse.SUPPRESS, metavar=setting.metavar, help=setting.help)


class _HelpAll(argparse.Action):
    """Print the help of all flags and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        sys.stdout.write(parser.format_help())
        raise SystemExit(0)


class _Version(argparse.Action):
    """Print the version and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        import cardiobench

        sys.stdout.write(f"cardiobench {cardiobench.__version__}\n")
        raise SystemExit(0)


def given(arguments: argparse.Namespace, kind: type[Settings]) -> dict[str, Any]:
    """Return the settings of a class from the command line."""
    return {name: value for name, value in vars(arguments).items() if name in settings_of(kind)}
