"""Attention probe: a learned query over the frozen tokens of a recording."""
