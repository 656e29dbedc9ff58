"""Implement `cardiobench prompts`."""

import argparse
from pathlib import Path

HELP = "write the prompts of a dataset's tasks as a file to edit, for `cardiobench eval --prompts`"
GROUP = "data"
EXAMPLES = """\
examples
  cardiobench prompts tmed2 --out prompts.json
  one task only
      cardiobench prompts camus/ef --out prompts.json
  then edit the texts and evaluate with them
      cardiobench eval --model org/model --tasks camus/ef --protocols zero_shot --prompts prompts.json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("name", metavar="DATASET", help="dataset, or one of its tasks such as tmed2/as")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="new JSON file")


def execute(arguments: argparse.Namespace) -> int:
    """Write the file, say what is left to fill in, and return the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.core.errors import BadConfig, NotApplicable
    from cardiobench.core.io import write_atomic
    from cardiobench.data import catalog
    from cardiobench.data.prompts import PLACEHOLDER, TEMPLATES, as_text, template

    name, out = arguments.name, arguments.out
    tasks = [catalog.task(name)] if "/" in name else catalog.spec(name).tasks
    if out.exists():
        raise BadConfig(f"{out} exists. Give --out a new file, or remove it.")
    content = template(tasks)
    targets = {target: texts for target, texts in content.items() if target != "version"}
    if not targets:
        raise NotApplicable(f"{name} has no task that prompts can answer: its numbers have no grid of values to try.")
    write_atomic(out, lambda path: path.write_text(as_text(content), encoding="utf-8"))
    console = Console()
    console.print(f"wrote {out}: texts for {', '.join(targets)}")
    if empty := [f"{target} {key}" for target, texts in targets.items() for key, lines in texts.items() if not lines]:
        console.print(f"without a text so far: {', '.join(empty)}. Fill these in, or remove their targets")
    if any(TEMPLATES in texts for texts in targets.values()):
        console.print(f"{PLACEHOLDER} stands for the number, and every text of a number needs it")
    return 0
