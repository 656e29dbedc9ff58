"""Folders of recordings in every format, made of the bundled ECGs or of generated hearts, as a hospital would have them."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.cli.main import main
from cardiobench.data.media.types import LEADS
from cardiobench.data.open import open_dataset


def adopt(folder: Path, labels: Path, out: Path, *flags: str, name: str = "mine") -> int:
    """Run the command; returns its exit code."""
    return main(["adopt", str(folder), "--labels", str(labels), "--name", name, "--out", str(out), *flags])


def bundled(count: int | None = None):
    """Return (rows, signals) of the bundled ECGs, in mV at 100 Hz."""
    dataset = open_dataset("ptb_xl_sample")
    frame = dataset.frame.head(count) if count else dataset.frame
    return frame, [dataset.recording(number).signal for number in range(len(frame))]


def write_labels(frame: pd.DataFrame, path: Path, **columns) -> Path:
    """Write id, patient, split, file, label, sex and age as a hospital's table."""
    table = pd.DataFrame(
        {
            "id": frame["id"],
            "patient_id": frame["patient_id"],
            "split": frame["split"],
            "file": frame["id"],
            "cd": frame["cd"],
            "sex": frame["sex"],
            "age": frame["age"],
            **columns,
        }
    )
    table.to_csv(path, index=False)
    return path


def write_npy(folder: Path, name: str, signal: np.ndarray) -> None:
    np.save(folder / f"{name}.npy", signal)


def write_csv(folder: Path, name: str, signal: np.ndarray) -> None:
    pd.DataFrame(signal, columns=LEADS)[list(reversed(LEADS))].to_csv(folder / f"{name}.csv", index=False)


def write_parquet(folder: Path, name: str, signal: np.ndarray) -> None:
    pd.DataFrame(signal, columns=LEADS).assign(time=np.arange(len(signal)) / 100).to_parquet(folder / f"{name}.parquet")


def write_hdf5(folder: Path, name: str, signal: np.ndarray) -> None:
    import h5py

    with h5py.File(folder / f"{name}.h5", "w") as file:
        stored = file.create_dataset("signal", data=signal.T)
        stored.attrs["fs"], stored.attrs["unit"] = 100.0, "mV"
        stored.attrs["leads"] = list(LEADS)


def write_edf(folder: Path, name: str, signal: np.ndarray) -> None:
    import edfio

    signals = [
        edfio.EdfSignal(
            (1000 * column).astype(np.float64),
            100,
            label=f"ECG {lead}",
            physical_dimension="uV",
            physical_range=(-32768, 32767),
        )
        for lead, column in zip(LEADS, signal.T, strict=True)
    ]
    edfio.Edf(signals).write(folder / f"{name}.edf")


def write_dicom(folder: Path, name: str, signal: np.ndarray) -> None:
    """Write a 12-lead waveform (PS3.3 A.34.3), leads by their meanings, in uV."""
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, TwelveLeadECGWaveformStorage, generate_uid

    def item(**values) -> Dataset:
        one = Dataset()
        for key, value in values.items():
            setattr(one, key, value)
        return one

    channels = [
        item(
            ChannelSourceSequence=[item(CodeValue="x", CodingSchemeDesignator="MDC", CodeMeaning=f"Lead {lead}")],
            ChannelSensitivity="1",
            ChannelSensitivityUnitsSequence=[
                item(CodeValue="uV", CodingSchemeDesignator="UCUM", CodeMeaning="microvolt")
            ],
            ChannelSensitivityCorrectionFactor="1",
            ChannelBaseline="0",
            WaveformBitsStored=16,
        )
        for lead in LEADS
    ]
    group = item(
        NumberOfWaveformChannels=12,
        NumberOfWaveformSamples=len(signal),
        SamplingFrequency="100",
        WaveformBitsAllocated=16,
        WaveformSampleInterpretation="SS",
        ChannelDefinitionSequence=channels,
        WaveformData=np.rint(1000 * signal).astype("<i2").tobytes(),
    )
    dataset = item(
        SOPClassUID=TwelveLeadECGWaveformStorage,
        SOPInstanceUID=generate_uid(),
        Modality="ECG",
        WaveformSequence=[group],
    )
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.save_as(folder / f"{name}.dcm", enforce_file_format=True)


UNIT, RATE, ORDER = ("--unit", "mV"), ("--sampling-rate", "100"), ("--leads", ",".join(LEADS))
FORMATS = {
    "npy": (write_npy, (*UNIT, *RATE, *ORDER), 0.0),
    "csv": (write_csv, (*UNIT, *RATE), 0.0),
    "parquet": (write_parquet, (*UNIT, *RATE), 0.0),
    "hdf5": (write_hdf5, (), 0.0),
    "edf": (write_edf, (), 5e-4),
    "dicom": (write_dicom, (), 5e-4),
}
"""Format -> writer, flags for what its files do not say, and largest error in mV: EDF and DICOM hold whole microvolts."""
