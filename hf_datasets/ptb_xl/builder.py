"""PTB-XL: 21,799 clinical 12-lead ECGs of 18,869 patients (PhysioNet, version 1.0.3)."""

from cardiobench.data.ptb_xl import PtbXlBuilder, release_spec


class PtbXl(PtbXlBuilder):
    """Rows of `ptbxl_database.csv` with the 100 Hz recordings; folds 1-8 are train, 9 validation and 10 test."""

    SPEC = release_spec("ptb_xl", "PTB-XL", replaces=("ptb_xl_sample",))
