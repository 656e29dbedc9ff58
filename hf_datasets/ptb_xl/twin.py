"""Synthetic twin of PTB-XL."""

from cardiobench.data.phantom.ptb_xl import write

__all__ = ["write"]
