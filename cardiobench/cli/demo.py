"""The demonstration: the weightless baselines through the real runner, on real and generated recordings."""

import subprocess
import sys
from pathlib import Path

MODELS = (
    "cardiobench/constant",
    "cardiobench/pixel-motion",
    "cardiobench/random-vit",
    "cardiobench/ecg-morphology",
    "cardiobench/minirocket",
)
TASKS = ("ptb_xl_sample/cd", "phantom_ecg/cd", "phantom_ecg/af", "phantom_echo/ef", "phantom_echo/view")


def command(output_dir: Path) -> list[str]:
    """The line that the demonstration runs, as a user would type it."""
    settings = "--quiet --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no"
    launch = ["accelerate", "launch", *settings.split()]
    return [*launch, "-m", "cardiobench.eval", "--model", *MODELS, "--tasks", *TASKS, "--output-dir", str(output_dir)]


def demo(output_dir: Path) -> int:
    """Run it, write the report of it with the worst test items, and name the page; returns the exit code."""
    line = command(output_dir)
    sys.stdout.write("$ " + " ".join(line) + "\n")
    sys.stdout.flush()
    code = subprocess.run([str(Path(sys.executable).parent / line[0]), *line[1:]], check=False).returncode
    if code:
        return code
    from cardiobench.core.console import Console
    from cardiobench.report.page.write import write_report

    _, (page, *_) = write_report([output_dir], output_dir / "page", png=True, examples=())
    Console().print(f"\nthe report, for a browser: {page.resolve()}")
    return 0
