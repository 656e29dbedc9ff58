"""The evaluation of the echo benchmark paper (arXiv:2510.00520), number for number, and the same files as they should be.

The profile `paper` keeps every rule of the published evaluator, at commit e0bc185 of BioMedIA-MBZUAI/CardioBench, that
decides about a digit; nothing outside this package knows any of them. One place for each:

* `profiles`: what is resampled, with which seed, and whether numbers are rounded before the interval is taken;
* `table_spec`, `table_specs`: per dataset, where truth and answers stand, which rows count, which groups are reported, what the files are called;
* `tables`: the numbers of a table, their bootstrap and their rounding;
* `join`: how answers meet their truth;
* `reproduce`: all tables of a folder of inputs; `page`: both profiles side by side.
"""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(commands={"reproduce-reference": "cardiobench.extensions.reproduction.command"})
