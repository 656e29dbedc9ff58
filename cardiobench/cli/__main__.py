"""Run `python -m cardiobench.cli` as the `cardiobench` command."""

import sys

from cardiobench.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
