"""How tokens are chosen and when to stop, in transformers' words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import isfinite
from operator import index
from typing import Any

import numpy as np

from pipeline.errors import ArgumentError, OptionError
from pipeline.generation.callers_functions import (
    Allowed,
    Criterion,
    Processor,
    allowed,
    criteria,
    processors,
    stop_strings,
)
from pipeline.generation.generated_texts import StepRecord

#: What keys and values are kept as: as the model computes them, or rounded to bytes.
KV_CACHES = ("model", "int8")

#: What a generation config may ask for that is not here, and the value that asks for nothing.
_IDLE = {
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "force_words_ids": None,
    "constraints": None,
    "top_h": None,
    "penalty_alpha": None,
    "dola_layers": None,
    "guidance_scale": 1.0,
    "watermarking_config": None,
    "token_healing": False,
    "max_time": None,
    "stop_strings": None,
}

#: What a generation config has of these that is about something else: transformers' own default, or the model's room.
_NOT_OF_CONFIGS = {"max_length"}

#: The settings that are functions of the caller, and what makes functions of arrays of them.
_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "logits_processor": processors,
    "prefix_allowed_tokens_fn": allowed,
    "stopping_criteria": criteria,
}

#: What is given to calls beside these; there is a cache whatever `use_cache` says.
_OF_CALLS = {
    "generation_config",
    "use_cache",
    "cache_implementation",
    "disable_compile",
    "stop_strings",
    "tokenizer",
}

#: What holds of settings, by name, and how that is said.
_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "max_new_tokens": (lambda x: x is None or index(x) >= 0, "a number from 0"),
    "max_length": (lambda x: x is None or index(x) >= 0, "a number from 0"),
    "temperature": (lambda x: x > 0, "a number above 0; leave do_sample out for no randomness"),
    "top_k": (lambda x: x is None or index(x) >= 0, "a number from 0, which is for all tokens"),
    "top_p": (lambda x: 0 < x <= 1, "a number above 0, and 1 at most"),
    "min_p": (lambda x: x is None or 0 <= x <= 1, "a number from 0 to 1"),
    "typical_p": (lambda x: 0 < x <= 1, "a number above 0, and 1 at most"),
    "epsilon_cutoff": (lambda x: 0 <= x < 1, "a number from 0 and below 1"),
    "eta_cutoff": (lambda x: 0 <= x < 1, "a number from 0 and below 1"),
    "no_repeat_ngram_size": (lambda x: index(x) >= 0, "a number from 0, which is for any repetition"),
    "bad_words_ids": (lambda x: all(x), "sequences of one token at least"),
    "min_length": (lambda x: index(x) >= 0, "a number from 0"),
    "min_new_tokens": (lambda x: index(x) >= 0, "a number from 0"),
    "num_beams": (lambda x: index(x) >= 1, "a number from 1"),
    "num_return_sequences": (lambda x: index(x) >= 1, "a number from 1"),
    "early_stopping": (lambda x: x in (True, False, "never"), "True, False or 'never'"),
    "prompt_lookup_num_tokens": (lambda x: index(x) >= 0, "a number from 0, which is for no drafts"),
    "max_matching_ngram_size": (lambda x: index(x) >= 1, "a number from 1"),
    "num_assistant_tokens": (lambda x: index(x) >= 1, "a number from 1"),
    "prefill_chunk_size": (lambda x: x is None or index(x) >= 2, "a number from 2"),
    "repetition_penalty": (lambda x: x > 0, "a number above 0"),
    "length_penalty": (isfinite, "a number"),
    "encoder_repetition_penalty": (lambda x: x > 0, "a number above 0"),
    "encoder_no_repeat_ngram_size": (lambda x: index(x) >= 0, "a number from 0, which is for any repetition"),
    "pad_token_id": (lambda x: x is None or index(x) == x, "a token, which is a whole number"),
    "forced_bos_token_id": (lambda x: x is None or index(x) == x, "a token, which is a whole number"),
    "decoder_start_token_id": (lambda x: x is None or index(x) == x, "a token, which is a whole number"),
}

#: The settings that are tokens, one or several.
_TOKENS = {"eos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens"}


@dataclass(frozen=True)
class Settings:
    """What `generate` goes by; names and defaults are those of transformers' GenerationConfig.

    Attributes:
        max_new_tokens: how many tokens at most; None for as many as the cache has room for.
        max_length: how many tokens at most with those of the prompt, its padding included, where `max_new_tokens` is
            None; of a generation config it is not taken.
        do_sample: whether tokens are drawn; else each is the most likely one.
        temperature, top_k, top_p, min_p: which tokens are drawn, and how likely; 0 or None for all tokens.
        typical_p, epsilon_cutoff, eta_cutoff: likewise; 1 and 0 for all tokens.
        num_beams: how many texts go on side by side for each prompt; the best of them is given. With `do_sample` it is
            drawn which of their next tokens they go on with.
        length_penalty: of beams: a text's score is divided by this power of its length.
        num_return_sequences: how many texts are given for each prompt, one after the other: as many are drawn, or the
            best of the beams.
        early_stopping: of beams: whether a prompt is done when `num_beams` texts have ended; False for when no better
            one is likely, "never" for when none is possible.
        repetition_penalty: what the scores of tokens are divided by that there are already; 1 for nothing.
        no_repeat_ngram_size: how many tokens in a row never stand twice in a text; 0 for any.
        encoder_repetition_penalty, encoder_no_repeat_ngram_size: likewise of what texts are about: the source of a
            model with an encoder, if that is text, and else the prompt; a penalty above 1 makes its tokens likelier.
        bad_words_ids: the sequences of tokens that never come.
        sequence_bias: what the scores of sequences of tokens are greater by, a dictionary.
        exponential_decay_length_penalty: from how many new tokens on texts get likelier to end, and by which factor.
        renormalize_logits: whether scores are logarithms of probabilities behind all of this.
        min_length, min_new_tokens: below how many tokens, of the text or of what follows the prompt, no row ends.
        suppress_tokens, begin_suppress_tokens: the tokens that never come, or never first.
        forced_bos_token_id: what follows a prompt of one token; None for any.
        forced_eos_token_id: the tokens of which one is the last that there is room for.
        eos_token_id: the tokens that end a row.
        prompt_lookup_num_tokens: how many tokens are taken at once for a draft of what comes next, from what followed
            where the last tokens stood before in the text; 0 for no drafts.
        max_matching_ngram_size: how many of the last tokens are looked for at most.
        num_assistant_tokens: how many tokens the first draft of an assistant has; more while all are right.
        prefill_chunk_size: how many tokens of a prompt are computed at once, which bounds the memory that takes; None
            for all.
        reuse_cache: whether the tokens that a prompt begins with stay in the cache where the call before has left
            them, as transformers does with `past_key_values`: the prompt is the whole text, of which only what is new
            is computed. Rows with other padding than before are moved. It is for weights that have not changed since.
        logits_processor, prefix_allowed_tokens_fn, stopping_criteria: functions of the caller, of torch's tensors for a
            prompt of torch and of arrays else: they change scores, before temperature and what follows it; say which
            tokens may come; end rows. They do not go with drafts, and none ends beams.
        return_dict_in_generate: whether `GeneratedTexts` are given, with the scores of steps if `output_scores` says
            so, and the logits if `output_logits` does.
        pad_token_id: what follows in a row that has ended; None for the first that ends one.
        decoder_start_token_id: what texts begin with, of models with an encoder.
        adds_decoder_start: whether that stands in front of a call's `decoder_input_ids` that begin otherwise: in all of
            transformers' models but Whisper and Donut.
    """

    max_new_tokens: int | None = None
    max_length: int | None = None
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int | None = 50
    top_p: float = 1.0
    min_p: float | None = None
    typical_p: float = 1.0
    epsilon_cutoff: float = 0.0
    eta_cutoff: float = 0.0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    encoder_repetition_penalty: float = 1.0
    encoder_no_repeat_ngram_size: int = 0
    bad_words_ids: tuple[tuple[int, ...], ...] = ()
    sequence_bias: tuple[tuple[tuple[int, ...], float], ...] = ()
    exponential_decay_length_penalty: tuple[int, float] | None = None
    renormalize_logits: bool = False
    min_length: int = 0
    min_new_tokens: int = 0
    suppress_tokens: tuple[int, ...] = ()
    begin_suppress_tokens: tuple[int, ...] = ()
    forced_bos_token_id: int | None = None
    forced_eos_token_id: tuple[int, ...] = ()
    num_beams: int = 1
    num_return_sequences: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    prompt_lookup_num_tokens: int = 0
    max_matching_ngram_size: int = 2
    num_assistant_tokens: int = 5
    prefill_chunk_size: int | None = None
    reuse_cache: bool = False
    logits_processor: tuple[Processor, ...] = ()
    prefix_allowed_tokens_fn: Allowed | None = None
    stopping_criteria: tuple[Criterion, ...] = ()
    return_dict_in_generate: bool = False
    output_scores: bool = False
    output_logits: bool = False
    eos_token_id: tuple[int, ...] = ()
    pad_token_id: int | None = None
    decoder_start_token_id: int | None = None
    adds_decoder_start: bool = True

    @staticmethod
    def of_config(config: Mapping[str, Any]) -> Settings:
        """What a generation config says about these, and defaults for the rest.

        Raises:
            OptionError: it asks for something else that changes the tokens.
        """
        return Settings()._with_config(config)

    def of_call(self, given: Mapping[str, Any], library: Any) -> Settings:
        """These with those of a `generation_config`, if a call gives one, and with what else it gives.

        Args:
            library: that of the prompt, whose tensors functions are given; None for arrays.

        Raises:
            OptionError: as `of_config` and `but`.
        """
        config = given.get("generation_config")
        base = self if config is None else self._with_config(as_dictionary(config))
        settings = {name: value for name, value in given.items() if name not in _OF_CALLS and value is not None}
        for name in _FUNCTIONS.keys() & settings.keys():
            settings[name] = _FUNCTIONS[name](settings[name], library)
        if given.get("stop_strings") is not None:
            ends = stop_strings(given["stop_strings"], given.get("tokenizer"))
            settings["stopping_criteria"] = (*settings.get("stopping_criteria", ()), ends)
        return base.but(**settings)

    def without_functions(self, what: str, *, but: Collection[str] = ()) -> None:
        """Raises `OptionError` if functions are given, but for some, where they are not there: for `what`."""
        for name in sorted(_FUNCTIONS.keys() - set(but)):
            if getattr(self, name):
                raise OptionError(f"{name}: is not there for {what}: leave it out")

    def _with_config(self, config: Mapping[str, Any]) -> Settings:
        for name, idle in _IDLE.items():
            if config.get(name) not in (None, idle):
                raise OptionError(
                    f"the generation_config has {name}={config[name]!r}, which generation has not yet; set it "
                    f"to {idle!r} for tokens without it"
                )
        known = {field.name for field in fields(Settings)} - _NOT_OF_CONFIGS - _FUNCTIONS.keys()
        return self.but(**{name: config[name] for name in known & config.keys()})

    def to_json(self) -> dict[str, Any]:
        """What `but` makes these of; no functions, which a model has none of."""
        return {name: value for name, value in asdict(self).items() if name not in _FUNCTIONS}

    def but(self, **given: Any) -> Settings:
        """These with those that are given; None for one that stays.

        Raises:
            OptionError: there is no such setting, or its value is out of range; says which.
        """
        known = [field.name for field in fields(self)]
        unknown = sorted(given.keys() - set(known))
        if unknown:
            raise OptionError(f"generate has no setting {unknown[0]!r}; it has {', '.join(known)}")
        given = {name: value for name, value in given.items() if value is not None}
        for name in _TOKENS & given.keys():
            given[name] = _tokens(name, given[name])
        if "bad_words_ids" in given:
            sequences = given["bad_words_ids"]
            if not isinstance(sequences, Iterable) or isinstance(sequences, str):
                raise OptionError(f"bad_words_ids: expected sequences of tokens, got {sequences!r}")
            given["bad_words_ids"] = tuple(_tokens("bad_words_ids", sequence) for sequence in sequences)
        if "sequence_bias" in given:
            given["sequence_bias"] = _biases(given["sequence_bias"])
        if "exponential_decay_length_penalty" in given:
            given["exponential_decay_length_penalty"] = _decay(given["exponential_decay_length_penalty"])
        changed = replace(self, **given)
        changed._check()
        return changed

    def check_tokens(self, vocabulary: int) -> None:
        """Raises `OptionError` if tokens are to come, or not to come, that the model has not."""
        named = {
            "suppress_tokens": self.suppress_tokens,
            "begin_suppress_tokens": self.begin_suppress_tokens,
            "bad_words_ids": [token for sequence in self.bad_words_ids for token in sequence],
            "sequence_bias": [token for sequence, _ in self.sequence_bias for token in sequence],
            "forced_bos_token_id": [] if self.forced_bos_token_id is None else [self.forced_bos_token_id],
            "forced_eos_token_id": self.forced_eos_token_id,
        }
        for name, tokens in named.items():
            for token in tokens:
                if not 0 <= token < vocabulary:
                    raise OptionError(f"{name}: expected tokens from 0 to {vocabulary - 1}, got {token}")

    def count(self, length: int, room: int) -> int:
        """How many tokens may follow a prompt of `length`, behind which there is room for `room`.

        Raises:
            ArgumentError: the prompt has `max_length` tokens already.
        """
        if self.max_new_tokens is not None:
            return self.max_new_tokens
        if self.max_length is None:
            return max(room, 0)
        if length >= self.max_length:
            raise ArgumentError(
                f"input_ids: {length} tokens leave no room for new ones, max_length={self.max_length}: give a "
                "larger one, or max_new_tokens"
            )
        return self.max_length - length

    def record(self) -> StepRecord | None:
        """Where what is asked for of steps is to be kept; None for tokens alone."""
        if not self.return_dict_in_generate:
            return None
        return StepRecord([] if self.output_scores else None, [] if self.output_logits else None)

    @property
    def keeps_steps(self) -> bool:
        """Whether more than tokens is asked for."""
        return self.return_dict_in_generate and (self.output_scores or self.output_logits)

    @property
    def copies(self) -> int:
        """How many rows each prompt takes."""
        return max(self.num_beams, self.num_return_sequences)

    @property
    def filler(self) -> int:
        """What follows in a row that has ended."""
        return self.eos_token_id[0] if self.pad_token_id is None and self.eos_token_id else self.pad_token_id or 0

    def _check(self) -> None:
        for name, (holds, expected) in _RANGES.items():
            value = getattr(self, name)
            try:
                is_right = holds(value)
            except TypeError:  # no number, or not a whole one
                is_right = False
            if not is_right:
                raise OptionError(f"{name}: expected {expected}, got {value!r}")
        if (self.num_beams > 1 or not self.do_sample) and self.num_return_sequences > self.num_beams:
            raise OptionError(
                f"num_return_sequences: of {self.num_beams} texts that are not drawn, "
                f"{self.num_return_sequences} are asked for: set num_beams to as many, or do_sample=True without beams"
            )


def as_dictionary(config: Any) -> Mapping[str, Any]:
    """What a generation config says."""
    found = config.to_dict() if hasattr(config, "to_dict") else config
    if not isinstance(found, Mapping):
        raise OptionError(f"generation_config: expected one of transformers' or a dictionary, got {config!r}")
    return found


def _tokens(name: str, given: Any) -> tuple[int, ...]:
    """One token, or several, of any library."""
    found = np.atleast_1d(np.asarray(given))
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise OptionError(f"{name}: expected tokens, which are whole numbers, got {given!r}")
    return tuple(int(token) for token in found)


def _biases(given: Any) -> tuple[tuple[tuple[int, ...], float], ...]:
    """Sequences of tokens and what is added to their scores, of a dictionary or a list of pairs."""
    pairs = given.items() if isinstance(given, Mapping) else given
    try:
        return tuple((_tokens("sequence_bias", sequence), float(bias)) for sequence, bias in pairs if len(sequence))
    except (TypeError, ValueError):
        raise OptionError(f"sequence_bias: expected numbers by sequences of tokens, got {given!r}") from None


def _decay(given: Any) -> tuple[int, float]:
    """From how many tokens on, and a factor."""
    try:
        start, factor = given
        return index(start), float(factor)
    except (TypeError, ValueError):
        raise OptionError(
            f"exponential_decay_length_penalty: expected a number of tokens and a factor, got {given!r}"
        ) from None
