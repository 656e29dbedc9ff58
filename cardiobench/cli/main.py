"""Parse the `cardiobench` command line and call the command in `cardiobench.cli.commands`."""

import sys

from cardiobench.cli import eval as evaluation
from cardiobench.cli.commands import GROUPS, commands
from cardiobench.cli.entry import guarded
from cardiobench.cli.flags import Parser, add_common, add_folders

DESCRIPTION = "Evaluate cardiology foundation models on echocardiography and ECG."


def build_parser() -> Parser:
    """Return the parser with all commands."""
    parser = Parser(prog="cardiobench", description=DESCRIPTION)
    add_common(parser)
    choices = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = evaluation.build_parser("cardiobench eval")
    command = choices.add_parser(
        "eval",
        parents=[run],
        add_help=False,
        help="evaluate models, or score a file of predictions or embeddings",
        description=run.description,
        epilog=run.epilog,
        usage=run.usage,
    )
    command.set_defaults(execute=evaluation.execute, parser=run)
    command.short, command.short_epilog = run.short, run.short_epilog
    parser.groups = {title: [] for title in GROUPS.values()}
    parser.groups[GROUPS["run"]].append("eval")
    for name, module in commands().items():
        command = choices.add_parser(
            name,
            help=module.HELP,
            description=f"{module.HELP[0].upper()}{module.HELP[1:]}.",
            epilog=getattr(module, "EXAMPLES", None),
        )
        module.configure(command)
        add_folders(command)
        command.set_defaults(execute=module.execute, parser=command)
        parser.groups[GROUPS.get(getattr(module, "GROUP", ""), GROUPS["more"])].append(name)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run `cardiobench`."""
    return guarded(build_parser, argv)


if __name__ == "__main__":
    sys.exit(main())
