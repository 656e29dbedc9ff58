"""The `cardiobench` command and `python -m cardiobench.eval`; everything that prints."""
