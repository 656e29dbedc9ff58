"""Run `accelerate launch -m cardiobench.eval`; the command itself is `cardiobench.cli.eval`."""

import sys

from cardiobench.cli.eval import main

if __name__ == "__main__":
    sys.exit(main())
