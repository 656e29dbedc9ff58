"""Errors, names, settings, files and the console: the foundation of all other packages."""
