"""Text tower of MERL: the query encoder of MedCPT and a projection to the ECG space."""

from typing import TYPE_CHECKING

import torch
from torch import nn

from cardiobench.models.families.merl.network import SHARED

if TYPE_CHECKING:
    from transformers import BertConfig


def bert_config() -> "BertConfig":
    """Return the configuration of `ncbi/MedCPT-Query-Encoder`: BERT base with its usual sizes."""
    from transformers import BertConfig

    return BertConfig(vocab_size=30522, layer_norm_eps=1e-12)


class MerlText(nn.Module):
    """BERT and a projection of two layers; tensors `lm_model.*` and `proj_t.*`."""

    def __init__(self) -> None:
        from transformers import BertModel

        super().__init__()
        self.lm_model = BertModel(bert_config())
        self.proj_t = nn.Sequential(
            nn.Linear(self.lm_model.config.hidden_size, SHARED), nn.GELU(), nn.Linear(SHARED, SHARED)
        )

    def pooled(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Encode token ids and attention mask (N, L) as BERT's pooler output (N, 768), on which MERL was trained."""
        return self.lm_model(input_ids=ids, attention_mask=mask).pooler_output

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Map token ids and attention mask (N, L) to vectors (N, 256), not normalised."""
        return self.proj_t(self.pooled(ids, mask))
