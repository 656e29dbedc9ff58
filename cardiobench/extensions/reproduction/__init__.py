"""Reproduce the evaluation of the echo benchmark paper (arXiv:2510.00520), as published and corrected.

The profile `paper` implements every digit-relevant rule of the published evaluator (commit e0bc185 of
BioMedIA-MBZUAI/CardioBench). These rules do not affect other packages. Modules:

* `profiles`: resampling unit, seed, and rounding before interval estimation;
* `table_spec`, `table_specs`: files, columns, rows and subgroups of each dataset;
* `tables`: scores, bootstrap and rounding;
* `join`: matching of predictions and truth;
* `reproduce`: all tables of an input folder;
* `page`: comparison of both profiles.
"""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(commands={"reproduce-reference": "cardiobench.extensions.reproduction.command"})
