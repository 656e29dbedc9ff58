"""Labels queried from ECGFM-KED, in our wording; the answer for a label depends on all labels of the same query.

Increase the version in `ked_queries.py` when a list or a word changes.
"""

import hashlib
import json
from collections.abc import Mapping

# The 71 statements of PTB-XL in a single query, as by the authors.
PTB_XL = {
    "1AVB": "first degree AV block",
    "2AVB": "second degree AV block",
    "3AVB": "third degree AV block",
    "ABQRS": "abnormal QRS",
    "AFIB": "atrial fibrillation",
    "AFLT": "atrial flutter",
    "ALMI": "anterolateral myocardial infarction",
    "AMI": "anterior myocardial infarction",
    "ANEUR": "ST-T changes of a ventricular aneurysm",
    "ASMI": "anteroseptal myocardial infarction",
    "BIGU": "bigeminal pattern",
    "CLBBB": "complete left bundle branch block",
    "CRBBB": "complete right bundle branch block",
    "DIG": "digitalis effect",
    "EL": "electrolyte disturbance or drug effect",
    "HVOLT": "high QRS voltage",
    "ILBBB": "incomplete left bundle branch block",
    "ILMI": "inferolateral myocardial infarction",
    "IMI": "inferior myocardial infarction",
    "INJAL": "subendocardial injury in anterolateral leads",
    "INJAS": "subendocardial injury in anteroseptal leads",
    "INJIL": "subendocardial injury in inferolateral leads",
    "INJIN": "subendocardial injury in inferior leads",
    "INJLA": "subendocardial injury in lateral leads",
    "INVT": "inverted T waves",
    "IPLMI": "inferoposterolateral myocardial infarction",
    "IPMI": "inferoposterior myocardial infarction",
    "IRBBB": "incomplete right bundle branch block",
    "ISCAL": "ischemia in anterolateral leads",
    "ISCAN": "ischemia in anterior leads",
    "ISCAS": "ischemia in anteroseptal leads",
    "ISCIL": "ischemia in inferolateral leads",
    "ISCIN": "ischemia in inferior leads",
    "ISCLA": "ischemia in lateral leads",
    "ISC_": "non-specific ischemia",
    "IVCD": "non-specific intraventricular conduction disturbance",
    "LAFB": "left anterior fascicular block",
    "LAO/LAE": "left atrial enlargement",
    "LMI": "lateral myocardial infarction",
    "LNGQT": "long QT interval",
    "LOWT": "low amplitude T waves",
    "LPFB": "left posterior fascicular block",
    "LPR": "prolonged PR interval",
    "LVH": "left ventricular hypertrophy",
    "LVOLT": "low QRS voltage",
    "NDT": "non-diagnostic T wave abnormalities",
    "NORM": "normal ECG",
    "NST_": "non-specific ST changes",
    "NT_": "non-specific T wave changes",
    "PAC": "atrial premature complex",
    "PACE": "artificial pacemaker",
    "PMI": "posterior myocardial infarction",
    "PRC(S)": "premature complexes",
    "PSVT": "paroxysmal supraventricular tachycardia",
    "PVC": "ventricular premature complex",
    "QWAVE": "Q waves present",
    "RAO/RAE": "right atrial enlargement",
    "RVH": "right ventricular hypertrophy",
    "SARRH": "sinus arrhythmia",
    "SBRAD": "sinus bradycardia",
    "SEHYP": "septal hypertrophy",
    "SR": "sinus rhythm",
    "STACH": "sinus tachycardia",
    "STD_": "non-specific ST depression",
    "STE_": "non-specific ST elevation",
    "SVARR": "supraventricular arrhythmia",
    "SVTAC": "supraventricular tachycardia",
    "TAB_": "T wave abnormality",
    "TRIGU": "trigeminal pattern",
    "VCLVH": "voltage criteria for left ventricular hypertrophy",
    "WPW": "Wolff-Parkinson-White syndrome",
}
RHYTHM = tuple("AFIB AFLT BIGU PACE PSVT SARRH SBRAD SR STACH SVARR SVTAC TRIGU".split())
FORM = tuple("ABQRS DIG HVOLT INVT LNGQT LOWT LPR LVOLT NDT NST_ NT_ PAC PRC(S) PVC QWAVE STD_ STE_ TAB_ VCLVH".split())
FORM_AND_DIAGNOSIS = ("DIG", "LNGQT", "NDT", "NST_")
DIAGNOSES = tuple(code for code in PTB_XL if code not in RHYTHM and (code not in FORM or code in FORM_AND_DIAGNOSIS))
SUPER = {
    "CD": "conduction disturbance",
    "HYP": "hypertrophy",
    "MI": "myocardial infarction",
    "NORM": "normal ECG",
    "STTC": "ST-T changes",
}
SIX = {
    "1dAVb": "first degree AV block",
    "RBBB": "right bundle branch block",
    "LBBB": "left bundle branch block",
    "SB": "sinus bradycardia",
    "ST": "sinus tachycardia",
    "AF": "atrial fibrillation",
}
NINE = {
    "NSR": "normal ECG",
    "AF": "atrial fibrillation",
    "IAVB": "first degree AV block",
    "LBBB": "left bundle branch block",
    "RBBB": "right bundle branch block",
    "PAC": "atrial premature complex",
    "PVC": "ventricular premature complex",
    "STD": "ST depression",
    "STE": "ST elevation",
}
ASKED: Mapping[str, Mapping[str, str]] = {"ptb_xl": PTB_XL, "super": SUPER, "six": SIX, "nine": NINE}
"""List -> labels of a query -> wording."""
ANSWERS: Mapping[str, tuple[str, tuple[str, ...] | str]] = {
    "all": ("ptb_xl", tuple(PTB_XL)),
    "diag": ("ptb_xl", DIAGNOSES),
    "form": ("ptb_xl", FORM),
    "rhythm": ("ptb_xl", RHYTHM),
    "super": ("super", tuple(SUPER)),
    "six": ("six", tuple(SIX)),
    "six_clean": ("six", tuple(SIX)),
    "nine": ("nine", tuple(NINE)),
    "af": ("six", "AF"),
}
"""Target of a task -> queried list, and its classes in that list, or the only label of a task with two classes."""


def digest() -> str:
    """Return the first 16 hex digits of the SHA-256 of all lists in query order."""
    return hashlib.sha256(json.dumps(ASKED).encode()).hexdigest()[:16]
