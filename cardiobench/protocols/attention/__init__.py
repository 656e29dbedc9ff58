"""Attention over the frozen tokens of a recording: a library for protocols."""
