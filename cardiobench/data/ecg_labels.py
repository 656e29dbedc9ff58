"""Which diagnostic statements make a conduction disturbance (CD) and atrial fibrillation (AF), per coding system.

Two named sets:

* `corrected` (default): every statement of PTB-XL's superclass CD (Wagner et al. 2020, doi:10.1038/s41597-020-0495-6),
  left posterior fascicular block included; atrial flutter without fibrillation is neither a positive nor a negative of AF.
* `paper`: the list of arXiv:2601.21830, Table 2, which omits left posterior fascicular block and gives PTB-XL no AF task.
"""

SCP_CONDUCTION = {
    "paper": frozenset({"1AVB", "2AVB", "3AVB", "CRBBB", "IRBBB", "CLBBB", "ILBBB", "LAFB", "IVCD", "WPW"}),
    "corrected": frozenset({"1AVB", "2AVB", "3AVB", "CRBBB", "IRBBB", "CLBBB", "ILBBB", "LAFB", "LPFB", "IVCD", "WPW"}),
}
SCP_FIBRILLATION = "AFIB"
SCP_FLUTTER = "AFLT"

CD_CLASSES = ("no CD", "CD")
AF_CLASSES = ("no AF", "AF")


def scp_conduction(statements: set[str], definition: str = "corrected") -> str:
    """Class of the CD task for a set of SCP statements, whatever their likelihood (0 means 'not stated' in PTB-XL)."""
    return CD_CLASSES[bool(statements & SCP_CONDUCTION[definition])]


def scp_fibrillation(statements: set[str]) -> str | None:
    """Class of the AF task for a set of SCP statements; None for flutter alone, which is neither."""
    if SCP_FIBRILLATION in statements:
        return AF_CLASSES[1]
    return None if SCP_FLUTTER in statements else AF_CLASSES[0]
