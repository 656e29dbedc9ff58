"""`cardiobench demo`: the baselines without weights through the real runner, on real and generated recordings."""

import argparse
import subprocess
import sys
from pathlib import Path

HELP = "the baselines on bundled and generated data, from embedding to report"
MODELS = (
    "cardiobench/constant",
    "cardiobench/metadata",
    "cardiobench/pixel-motion",
    "cardiobench/random-vit",
    "cardiobench/ecg-morphology",
    "cardiobench/minirocket",
)
TASKS = ("ptb_xl_sample/cd", "phantom_ecg/cd", "phantom_ecg/af", "phantom_echo/ef", "phantom_echo/view")
LAUNCH = "accelerate launch --quiet --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no".split()


def configure(parser: argparse.ArgumentParser) -> None:
    """Add its flags."""
    parser.add_argument("--output-dir", type=Path, default=Path("results"), metavar="DIR")


def execute(arguments: argparse.Namespace) -> int:
    """Run the line that a user would type, then write the report with the worst test items; returns the exit code."""
    folder = arguments.output_dir
    line = [*LAUNCH, "-m", "cardiobench.eval", "--model", *MODELS, "--tasks", *TASKS, "--output-dir", str(folder)]
    sys.stdout.write("$ " + " ".join(line) + "\n")
    sys.stdout.flush()
    code = subprocess.run([str(Path(sys.executable).parent / line[0]), *line[1:]], check=False).returncode
    if code:
        return code
    from cardiobench.core.console import Console
    from cardiobench.report.page.write import write_report

    _, (page, *_) = write_report([folder], folder / "page", png=True, examples=())
    Console().print(f"\nthe report, for a browser: {page.resolve()}")
    return 0
