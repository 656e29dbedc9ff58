"""Synthetic twin of PTB-XL at 500 Hz: one download contains both rates."""

from cardiobench.data.phantom.ptb_xl import write

__all__ = ["write"]
