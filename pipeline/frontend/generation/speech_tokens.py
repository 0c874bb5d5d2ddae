"""How Whisper's texts begin, as its generation config says."""

from __future__ import annotations

from typing import Any

from torch import nn

from pipeline.generation.speech import SpeechTokens


def speech_tokens(model: nn.Module) -> SpeechTokens | None:
    """What the config says; None for another model than Whisper."""
    if model.config.model_type != "whisper":
        return None
    from transformers.models.whisper.tokenization_whisper import TO_LANGUAGE_CODE

    config = model.generation_config
    languages: dict[str, int] = dict(_of(config, "lang_to_id") or {})
    codes = {code: f"<|{code}|>" for code in TO_LANGUAGE_CODE.values()}
    names = codes | {name: codes[code] for name, code in TO_LANGUAGE_CODE.items()}
    languages |= {name: languages[token] for name, token in names.items() if token in languages}
    forced = _of(config, "forced_decoder_ids") or getattr(model.config, "forced_decoder_ids", None) or ()
    language, task = _of(config, "language"), _of(config, "task")
    return SpeechTokens(
        languages=languages,
        tasks=dict(_of(config, "task_to_id") or {}),
        last=_of(config, "no_timestamps_token_id"),
        forced=tuple(token for _, token in forced),
        language=language,
        task=task,
    )


def _of(config: Any, name: str) -> Any:
    return getattr(config, name, None)
