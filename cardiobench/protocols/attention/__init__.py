"""Attention over the frozen tokens of a recording, trained on them: a library for protocols."""
