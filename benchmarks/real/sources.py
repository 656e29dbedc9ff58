"""Published networks and answers: repository, commit, the files that are read, and what they were trained on."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cardiobench.core.errors import BadData, MissingData

NOT_STATED = "none stated"


@dataclass(frozen=True)
class Source:
    """A public repository, or an installed package.

    Attributes:
        repository: Owner and name on GitHub; `folder` of the clone is the name.
        commit: Commit whose files are read.
        files: Mapping from path in the clone to SHA-256 of its content.
        licence: Licence of the weights or answers, or "none stated".
        trained_on: Data and labels of the training.
        size: Bytes of the weights or answers.
        seen: Datasets of the benchmark among them, for `seen_in_pretraining`.
        reported: The authors' number with its test set; "" if they give none.
    """

    repository: str
    commit: str
    files: Mapping[str, str] = field(default_factory=dict)
    licence: str = NOT_STATED
    trained_on: str = ""
    size: int = 0
    seen: tuple[str, ...] = ("none",)
    reported: str = ""

    @property
    def name(self) -> str:
        """Name of the repository, and of the folder of its clone."""
        return self.repository.partition("/")[2]

    def read(self, clone: Path, name: str) -> bytes:
        """Return the content of a file of the clone.

        Args:
            clone: Folder of the clone.
            name: One of `files`.

        Raises:
            MissingData: The file is not there.
            BadData: It is not the file of the commit.
        """
        path = clone / name
        fix = f"Run: git -C {clone} checkout {self.commit}"
        if not path.is_file():
            raise MissingData(
                f"{path} does not exist. Give the folder of a clone of https://github.com/{self.repository}. {fix}"
            )
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.files[name]:
            raise BadData(f"{path} has the SHA-256 {digest}; at commit {self.commit} it is {self.files[name]}. {fix}")
        return content


PTB_XL = ("ptb_xl", "ptb_xl_500", "ptb_xl_sample")
LABELS = "PTB-XL folds 1 to 8, five classes; the checkpoint was chosen on fold 9"

TRUST_ECG = Source(
    "Kaleemullah-Younas/TrustECG",
    "e3e1cd78c0406b5c4cb6802845926ea02a6985bd",
    {"checkpoints/trustecg_model.pt": "1f3c091234c5fc2ec9026f5c21a6d3e2c9ba06b31d95e252ea3fbc947c66e827"},
    licence="MIT in pyproject.toml, no licence file",
    size=1138086,
    trained_on=LABELS,
    seen=PTB_XL,
    reported="macro AUROC 91.2 on fold 10",
)
ECG_SCOPE = Source(
    "SaimZafar/ecg-ptbxl-project",
    "5186a308065eda7405b34861ef8073eadf58d8e0",
    {"backend/assets/best_model.pt": "a0822973a6625b47e51103e395fdeb3a27edfdef4cf82597428475f9786a9bed"},
    licence="MIT for the code, none stated for the weights",
    size=197877,
    trained_on=LABELS,
    seen=PTB_XL,
    reported="macro AUROC 92.0 on fold 10, mean of three seeds",
)
INCEPTION = Source(
    "EkatAI/ECG-InceptionTime-PTB-XL",
    "af5dc457d691cabfe4a5edeac091df36f37809c0",
    {"models/InceptionTimeECG.pth": "9a81dedac3aa2e36985915f445088df9e9b6ef05feb725b4fbf9ab5db1f77e60"},
    size=1872469,
    trained_on=LABELS,
    seen=PTB_XL,
    reported="F1 72.0 on fold 10",
)
ALEXNET = Source(
    "Aiwiscal/pynq-onnx-demo",
    "b833d32603a4b072931556d46fee0f86793ea885",
    {
        "model_files/alexnet_1d_ptbxl.onnx": "694765dd6cc63ebf2b9ec18b21c2ba7101d11c56d6eb1c9e7321ba5126ce18c8",
        "model_files/alexnet_1d_ptbxl_k.onnx": "5621e66f4877a4d91270ac320720553b8864b82068264a42d1d1c556157e2a1d",
    },
    size=293496,
    trained_on="PTB-XL, five classes; folds and preparation not stated",
    seen=PTB_XL,
)
XRESNET = Source(
    "helme/ecg_ptbxl_benchmarking",
    "cdbf4e66d7e57d9b6a2657b6024716212b8d0afa",
    {
        "output/exp0/models/fastai_xresnet1d101/y_test_pred.npy": "8202066cda10db85a0f2b0af99aebce18763ce9fafe98ec1ab478b2f3672020a",
        "output/exp0/data/y_test.npy": "78ef3ca8af55a755752c0e0d568acff3958d29ad1398abd4691b02e3b8602aa0",
    },
    licence="GPL-3.0",
    size=857573,
    trained_on="PTB-XL folds 1 to 8, 71 statements; validated on fold 9",
    seen=PTB_XL,
    reported="macro AUROC 92.54 (te_results.csv)",
)
READERS = ("cardiology_residents", "emergency_residents", "medical_students", "dnn")
CODE_TEST = Source(
    "antonior92/automatic-ecg-diagnosis",
    "403934867cea25a85b54faca025ac65b1ac18a45",
    {
        "data/annotations/gold_standard.csv": "4a0ed70593339c915c18187f3d4298a540db60db2563f1e17f2226f6302ba7bd",
        "data/annotations/cardiology_residents.csv": "66d4e6f9e21dad0b5f3b8472f5997799e8bd79eb2675926a026e3cb6ab8d2635",
        "data/annotations/emergency_residents.csv": "daf7ab02eb04998ab9dbc823b715a04765a1761507df88ceb8fddad1ed56182d",
        "data/annotations/medical_students.csv": "352cdec373fc2b2792665f9795603fed2b87e434e4f698ac0ef0e2846bc23595",
        "data/annotations/dnn.csv": "5ab557afa703c31b6fc33db8a613ea5650e7eaf414d1c62f864e77447aa2a34d",
        "dnn_predicts/model.npy": "125c30aa6dcaf18a91a285877c52ba0b0e2edcb7dfc4bc9cc099cacd9bea69bd",
        "outputs/tables/scores.csv": "fbb8abf0ef58fa5f6f14ba4e20ee2113ed5c8384f7701ffc5fc99e25798b2218",
    },
    licence="MIT",
    size=19976,
    trained_on="CODE, six diagnoses; no exam of CODE-test",
    reported="F1 of each diagnosis (scores.csv), equal to three digits",
)
FUSION_MODELS = ("signal_embedding", "fair_concat", "structured")
FUSION = Source(
    "seefreewind/ecg-ptbxl-multimodal-decision-support",
    "505dc758916ab6d6e94b2f268744e98c21d81e07",
    {
        "results/stage14l/signal_embedding/stage14l_signal_embedding_mlp_test_predictions.csv": "a82daaaf912156aee4d47bb64a0c67a6bccdb88ef24e0259aad1f20c150273f3",
        "results/stage14l/signal_embedding/stage14l_signal_embedding_mlp_metrics_test.csv": "8428355452d1675c15ac0f9f0cb3846bd773a126d287a786f44d40fe52f5c825",
        "results/stage14l/fair_concat/stage14l_fair_concat_mlp_test_predictions.csv": "29e846e210a8dc9f2aaa990c0d20aa8d2c6d94a057e2e6123251fe391685a090",
        "results/stage14l/fair_concat/stage14l_fair_concat_mlp_metrics_test.csv": "7e6f349809e125b959ffcbda527b1110febe0603ae21691574675de88bf0f4d7",
        "results/stage14l/structured/stage14l_structured_mlp_test_predictions.csv": "af448a541ea32d99e8cc1c49a88a71a7a6cd305c3139b5992dbf71d43d22bebe",
        "results/stage14l/structured/stage14l_structured_mlp_metrics_test.csv": "c996379c4fa807663e9d779d7b2a0b570c0bb70207b129a48559a099d862d3c5",
    },
    licence="MIT",
    size=507976,
    trained_on=LABELS,
    seen=PTB_XL,
    reported="macro AUROC 90.94, 90.97 and 57.04 on fold 10 (metrics_test.csv), equal to 12 digits",
)
CAMUS = Source(
    "sarah1ibrahim/End-to-End-Echocardiographic-Analysis-Pipeline",
    "a0acf00bd2d4343c0c6e6869a86e14bbcedd027d",
    licence="CC BY-NC-SA 4.0 (terms of CAMUS)",
    trained_on="the frames; the network is that of the extra `pretrained` (ImageNet)",
)

SOURCES = {
    "trustecg": TRUST_ECG,
    "ecg_scope": ECG_SCOPE,
    "inceptiontime": INCEPTION,
    "onnx": ALEXNET,
    "xresnet1d101": XRESNET,
    "fusion": FUSION,
    "code_test": CODE_TEST,
    "camus": CAMUS,
}
"""Name of a run -> its repository."""
