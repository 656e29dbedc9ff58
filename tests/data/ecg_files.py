"""Write small ECG files in every supported format: usual lead order, mV, 100 Hz."""

from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data.media.types import LEADS


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
