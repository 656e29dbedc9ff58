"""The `cardiobench` command and `python -m cardiobench.eval`; only this package prints."""
