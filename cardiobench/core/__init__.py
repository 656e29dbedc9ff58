"""Errors, names, settings, files and the console: what everything else stands on."""
