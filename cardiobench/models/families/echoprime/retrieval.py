"""Predictions of EchoPrime from the nearest studies in its candidate bank, separately for each report section."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from cardiobench.models.families.echoprime.network import WIDTH

NEAREST = 50
VIEWS = (
    "A2C",
    "A3C",
    "A4C",
    "A5C",
    "Apical_Doppler",
    "Doppler_Parasternal_Long",
    "Doppler_Parasternal_Short",
    "Parasternal_Long",
    "Parasternal_Short",
    "SSN",
    "Subcostal",
)
# Report section -> phenotypes read from it, in the order of EchoPrime's own table.
PHENOTYPES = {
    "Left Ventricle": ("impella", "ejection_fraction"),
    "Right Ventricle": ("pacemaker", "rv_systolic_function_depressed", "right_ventricle_dilation"),
    "Left Atrium": ("left_atrium_dilation",),
    "Right Atrium": ("right_atrium_dilation",),
    "Mitral Valve": ("mitraclip", "mitral_annular_calcification", "mitral_stenosis", "mitral_regurgitation"),
    "Aortic Valve": ("tavr", "bicuspid_aov_morphology", "aortic_stenosis", "aortic_regurgitation"),
    "Tricuspid Valve": ("tricuspid_stenosis", "tricuspid_valve_regurgitation"),
    "Pericardium": ("pericardial_effusion",),
    "Aorta": ("aortic_root_dilation",),
    "IVC": ("dilated_ivc",),
    "Pulmonary Artery": ("pulmonary_artery_pressure_continuous",),
}
SECTION_OF = {phenotype: section for section, names in PHENOTYPES.items() for phenotype in names}


@dataclass(frozen=True)
class SectionWeights:
    """Weights of the views for each report section.

    Attributes:
        sections: Names of the rows.
        table: Weights, (sections, 11), columns in the order of `VIEWS`.
    """

    sections: tuple[str, ...]
    table: np.ndarray


@dataclass(frozen=True)
class CandidateBank:
    """Candidate studies with known reports.

    Attributes:
        embeddings: Float32 (candidates, 512), unit length.
        labels: Mapping from phenotype to labels, (candidates,), NaN if the report of a candidate does not state it.
    """

    embeddings: torch.Tensor
    labels: dict[str, np.ndarray]


def section_vectors(
    study: np.ndarray, weights: SectionWeights, *, uniform: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Average the recordings of a study into one vector per report section, using the section's weights of the views.

    Args:
        study: Vectors, (recordings, 523): 512 numbers of the video and 11 of the view (one-hot); at least one
            recording.
        weights: Weights of sections and views.
        uniform: Whether to weight all recordings equally if all have weight zero for a section. Otherwise the vector is
            zero, all candidates are equally near, and the chosen ones are arbitrary.

    Returns:
        Unit vectors (sections, 512), and for each section whether its weights were all zero.
    """
    study = np.asarray(study, dtype=np.float32)
    shares = weights.table[:, study[:, WIDTH:].argmax(axis=1)].astype(np.float32)
    blind = np.logical_not(shares.any(axis=1))
    if uniform:
        shares[blind] = 1
    vectors = shares @ study[:, :WIDTH]
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), blind


def nearest(vectors: np.ndarray, bank: CandidateBank, k: int = NEAREST, chunk: int = 64) -> np.ndarray:
    """Return the indices (n, k) of the k nearest candidates of each vector (n, 512) by cosine, nearest first."""
    k = min(k, len(bank.embeddings))
    rows = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32)).split(chunk)
    return torch.cat([(some @ bank.embeddings.T).topk(k, dim=1).indices for some in rows]).numpy()


def row_of(section: str, weights: SectionWeights, *, upstream_compat: bool = False) -> int:
    """Return the row of a section in the table of weights, by its name.

    The released code of EchoPrime (45609cd) uses the index among the 11 sections with phenotypes as the row among all
    15 sections, so all sections except the left ventricle use the vector of another section; `upstream_compat` does the
    same.
    """
    return list(PHENOTYPES).index(section) if upstream_compat else weights.sections.index(section)


def section_of(phenotype: str, weights: SectionWeights, *, upstream_compat: bool = False) -> SectionWeights:
    """Return the report section of a phenotype with its weights."""
    row = row_of(SECTION_OF[phenotype], weights, upstream_compat=upstream_compat)
    return SectionWeights((weights.sections[row],), weights.table[row : row + 1])


def answers(
    phenotype: str,
    studies: Sequence[np.ndarray],
    weights: SectionWeights,
    bank: CandidateBank,
    *,
    k: int = NEAREST,
    upstream_compat: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Predict a phenotype of each study from the nearest candidate reports.

    Args:
        phenotype: A phenotype in `PHENOTYPES`.
        studies: Vectors of each study, (recordings, 523).
        weights: Weights of sections and views.
        bank: The candidates.
        k: Number of neighbours.
        upstream_compat: Whether rows and zero weights follow the released code.

    Returns:
        Mean label of the candidates with a label, float64 (n,): a number or the share of candidates with the finding;
            and whether all recordings of a study have views with zero weight for the section, bool (n,).
    """
    one = section_of(phenotype, weights, upstream_compat=upstream_compat)
    vectors, blind = zip(*(section_vectors(study, one, uniform=not upstream_compat) for study in studies), strict=True)
    labels = bank.labels[phenotype].astype(np.float64)[nearest(np.concatenate(vectors), bank, k)]
    known = ~np.isnan(labels)
    total, count = np.where(known, labels, 0.0).sum(axis=1), known.sum(axis=1)
    return np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0), np.concatenate(blind)


def report(
    study: np.ndarray, weights: SectionWeights, bank: CandidateBank, *, k: int = NEAREST, upstream_compat: bool = False
) -> dict[str, float]:
    """Predict all phenotypes of a study (recordings, 523); returns name -> value."""
    return {
        phenotype: float(answers(phenotype, [study], weights, bank, k=k, upstream_compat=upstream_compat)[0][0])
        for phenotype in SECTION_OF
    }
