"""Encoders of text and of sound, of transformers."""

from __future__ import annotations

from typing import Any

import torch
import transformers as tf

from architectures.architecture import Architecture, Given, text

#: What most configurations call their sizes.
HIDDEN: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 48,
}
TEXT: dict[str, Any] = {**HIDDEN, "vocab_size": 61}
_ROBERTA: dict[str, Any] = {**TEXT, "pad_token_id": 1, "max_position_embeddings": 40}
_SOUND: dict[str, Any] = {
    **HIDDEN,
    "vocab_size": 32,
    "conv_dim": (16, 16),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 8),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}


def _encoder(model: str, config: str, **options: Any) -> Architecture:
    return Architecture(lambda: getattr(tf, model)(getattr(tf, config)(**options)), text)


def _sound(model: str, config: str) -> Architecture:
    def inputs(rows: int, length: int) -> Given:
        return {"input_values": torch.randn(rows, 100 * length)}

    return Architecture(lambda: getattr(tf, model)(getattr(tf, config)(**_SOUND)), inputs)


ENCODERS: dict[str, Architecture] = {
    "albert": _encoder("AlbertModel", "AlbertConfig", **TEXT, embedding_size=16),
    "bert": _encoder("BertModel", "BertConfig", **TEXT),
    "bert-classifier": _encoder("BertForSequenceClassification", "BertConfig", **TEXT),
    "camembert": _encoder("CamembertModel", "CamembertConfig", **_ROBERTA),
    "convbert": _encoder("ConvBertModel", "ConvBertConfig", **TEXT, embedding_size=16, head_ratio=1),
    "deberta-v2": _encoder(
        "DebertaV2Model",
        "DebertaV2Config",
        **TEXT,
        relative_attention=True,
        position_buckets=8,
        pos_att_type=["p2c", "c2p"],
    ),
    "distilbert": _encoder(
        "DistilBertModel", "DistilBertConfig", vocab_size=61, dim=32, n_layers=1, n_heads=2, hidden_dim=48
    ),
    "electra": _encoder("ElectraModel", "ElectraConfig", **TEXT, embedding_size=16),
    "fnet": _encoder(
        "FNetModel", "FNetConfig", vocab_size=61, hidden_size=32, num_hidden_layers=1, intermediate_size=48
    ),
    "layoutlm": _encoder("LayoutLMModel", "LayoutLMConfig", **TEXT),
    "mobilebert": _encoder(
        "MobileBertModel", "MobileBertConfig", **TEXT, embedding_size=16, true_hidden_size=16, intra_bottleneck_size=16
    ),
    "modernbert": _encoder("ModernBertModel", "ModernBertConfig", **TEXT, pad_token_id=0),
    "mpnet": _encoder("MPNetModel", "MPNetConfig", **TEXT),
    "roberta": _encoder("RobertaModel", "RobertaConfig", **_ROBERTA),
    "squeezebert": _encoder("SqueezeBertModel", "SqueezeBertConfig", **TEXT, embedding_size=32),
    "xlm-roberta": _encoder("XLMRobertaModel", "XLMRobertaConfig", **_ROBERTA),
    "hubert": _sound("HubertModel", "HubertConfig"),
    "wav2vec2": _sound("Wav2Vec2ForCTC", "Wav2Vec2Config"),
}
