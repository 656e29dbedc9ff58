"""Kinds of cells: one model under one protocol on one task or subject, each of which computes its own record."""
