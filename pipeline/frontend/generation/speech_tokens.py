"""What Whisper's generation config says of its texts."""

from __future__ import annotations

from typing import Any

from torch import nn

from pipeline.generation.speech_tokens import SpeechTokens

#: What a config may say of a call that says nothing, by name.
_USUAL = (
    "return_timestamps",
    "condition_on_prev_tokens",
    "compression_ratio_threshold",
    "logprob_threshold",
    "no_speech_threshold",
)


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
        latest_start=_of(config, "max_initial_timestamp_index"),
        previous=_previous(config),
        positions=model.config.max_target_positions,
        usual={name: found for name in _USUAL if (found := _of(config, name)) is not None},
    )


def _previous(config: Any) -> int | None:
    """The token in front of the text before; old configs have it among those that never come, last but one."""
    found = _of(config, "prev_sot_token_id")
    suppressed = list(_of(config, "suppress_tokens") or [])
    return suppressed[-2] if found is None and len(suppressed) >= 2 else found


def _of(config: Any, name: str) -> Any:
    return getattr(config, name, None)
