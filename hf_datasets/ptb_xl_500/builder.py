"""PTB-XL at 500 Hz: the same records as `ptb_xl` at their original sampling rate."""

from dataclasses import replace

from cardiobench.data.ptb_xl import PtbXlBuilder, release_spec


class PtbXl500(PtbXlBuilder):
    """Rows, labels and folds of `ptb_xl` with the 500 Hz recordings, from the same raw folder."""

    # Other ECG sources have 400 or 500 Hz, so that at 100 Hz the sampling rate would identify PTB-XL.
    SPEC = replace(
        release_spec("ptb_xl_500", "PTB-XL at 500 Hz", replaces=("ptb_xl", "ptb_xl_sample")), folder="ptb_xl"
    )
    FILENAME = "filename_hr"
