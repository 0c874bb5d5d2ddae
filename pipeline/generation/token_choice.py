"""Which token comes next: scores as transformers' processors make them of logits, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.generation.callers_functions import only_allowed
from pipeline.generation.generated_texts import StepRecord
from pipeline.generation.prompt import Prompt
from pipeline.generation.sampling import Draw
from pipeline.generation.settings import Settings


@dataclass(frozen=True)
class TokenChoice:
    """How the tokens of some texts are chosen.

    Attributes:
        settings: what it goes by.
        begin: how long the prompts are.
        end: how long the texts may be.
        padding: how many tokens in front of each prompt are padding, int64[rows].
        read: the tokens that texts are about, int64[rows, length]; None where that is no text.
        record: what is kept of the steps; None for nothing.
    """

    settings: Settings
    begin: int
    end: int
    padding: np.ndarray
    read: np.ndarray | None = None
    record: StepRecord | None = None

    @staticmethod
    def of(prompt: Prompt, settings: Settings, count: int) -> TokenChoice:
        """For the texts that follow a prompt, of `count` tokens at most."""
        length = prompt.given.shape[1]
        return TokenChoice(settings, length, length + count, prompt.given_padding, prompt.read, prompt.record)

    def next_tokens(self, logits: np.ndarray, before: np.ndarray, draw: Draw) -> np.ndarray:
        """A token for each row, int64[rows], from f32[rows, vocabulary]; `before` are those so far, [rows, count]."""
        if not self.settings.do_sample:
            return self.likeliest(logits, before)
        return draw.tokens(self.probabilities(logits, before))

    def likeliest(self, logits: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The token of the highest score for each row, int64[rows]; arguments as of `next_tokens`."""
        return self.kept(self.processed(logits, before)).argmax(-1)

    def probabilities(self, logits: np.ndarray, before: np.ndarray, times: int = 1) -> np.ndarray:
        """How likely tokens are drawn, f32[rows, vocabulary]; arguments as of `next_tokens`.

        Args:
            times: how often temperature, `top_k` and what follows these is applied.
        """
        scores = self.processed(logits, before)
        for _ in range(times):
            scores = warped(scores, self.settings)
        return softmax(self.kept(scores))

    def kept(self, scores: np.ndarray) -> np.ndarray:
        """The scores that tokens are chosen by, f32[rows, vocabulary], of those that are processed."""
        if self.settings.renormalize_logits:
            scores = log_softmax(scores)
        if self.record is not None:
            self.record.add_scores(scores)
        return scores

    def processed(self, scores: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Scores, -inf for tokens that must not come; arguments as of `next_tokens`."""
        settings, count = self.settings, before.shape[1]
        for sequence, bias in settings.sequence_bias:
            scores = _biased(scores, before, sequence, bias)
        if settings.encoder_repetition_penalty != 1 and self.read is not None:
            scores = _penalized(scores, self.read, 1 / settings.encoder_repetition_penalty)
        if settings.repetition_penalty != 1:
            scores = self._without_repetition(scores, before)
        if 0 < settings.no_repeat_ngram_size <= count + 1:
            scores = _without_ngrams(scores, before, before, settings.no_repeat_ngram_size)
        if 0 < settings.encoder_no_repeat_ngram_size <= count + 1 and self.read is not None:
            scores = _without_ngrams(scores, self.read, before, settings.encoder_no_repeat_ngram_size)
        for sequence in settings.bad_words_ids:
            if len(sequence) > 1 or sequence[0] not in settings.eos_token_id:
                scores = _without_sequence(scores, before, sequence)
        if count < settings.min_length or count - self.begin < settings.min_new_tokens:
            scores = _without(scores, tuple(token for token in settings.eos_token_id if token < scores.shape[1]))
        if settings.prefix_allowed_tokens_fn is not None:
            scores = only_allowed(scores, before, settings.prefix_allowed_tokens_fn, settings.num_beams)
        if settings.forced_bos_token_id is not None and count == 1:
            scores = _only(scores, (settings.forced_bos_token_id,))
        if settings.forced_eos_token_id and count == self.end - 1:
            scores = _only(scores, settings.forced_eos_token_id)
        if settings.exponential_decay_length_penalty is not None:
            scores = self._ending(scores, count, *settings.exponential_decay_length_penalty)
        scores = _without(scores, settings.suppress_tokens)
        begin = self.begin + (self.begin == 1 and settings.forced_bos_token_id is not None)
        scores = _without(scores, settings.begin_suppress_tokens) if count == begin else scores
        for processor in settings.logits_processor:
            scores = processor(before, scores)
        return scores

    def stopped(self, texts: np.ndarray) -> np.ndarray:
        """Which of texts int64[rows, count] the caller's functions end, bool[rows]."""
        found = np.zeros(len(texts), bool)
        for ends in self.settings.stopping_criteria:
            found |= ends(texts)
        return found

    def _without_repetition(self, scores: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Scores of tokens that there are already divided by the penalty, negative ones multiplied."""
        there = [tokens[padding:] for tokens, padding in zip(before, self.padding, strict=True)]
        return _penalized(scores, there, self.settings.repetition_penalty)

    def _ending(self, scores: np.ndarray, count: int, start: int, factor: float) -> np.ndarray:
        """Scores, those of the tokens that end texts greater by a power of a factor from `start` tokens on."""
        further = count - self.begin - start
        if further <= 0:
            return scores
        changed, ends = scores.copy(), [token for token in self.settings.eos_token_id if token < scores.shape[1]]
        found = scores[:, ends]
        growth = np.float32(factor**further - 1)
        changed[:, ends] = np.where(np.isfinite(found), found + np.abs(found) * growth, found)
        return changed


def _penalized(scores: np.ndarray, there: Sequence[np.ndarray] | np.ndarray, penalty: float) -> np.ndarray:
    """Scores of the tokens of each row divided by a penalty, negative ones multiplied."""
    changed = scores.copy()
    for row, tokens in enumerate(there):
        found = scores[row, tokens]
        changed[row, tokens] = np.where(found < 0, found * penalty, found / penalty)
    return changed


def _biased(scores: np.ndarray, before: np.ndarray, sequence: tuple[int, ...], bias: float) -> np.ndarray:
    """Scores, that of the last token of a sequence greater by `bias` where its others are the last of the row."""
    *first, last = sequence
    if len(first) > before.shape[1]:
        return scores
    changed = scores.copy()
    follows = (before[:, before.shape[1] - len(first) :] == first).all(-1)
    changed[follows, last] += np.float32(bias)
    return changed


def _without(scores: np.ndarray, tokens: tuple[int, ...]) -> np.ndarray:
    if not tokens:
        return scores
    changed = scores.copy()
    changed[:, list(tokens)] = -np.inf
    return changed


def _only(scores: np.ndarray, tokens: tuple[int, ...]) -> np.ndarray:
    forced = np.full_like(scores, -np.inf)
    forced[:, list(tokens)] = 0
    return forced


def _without_ngrams(scores: np.ndarray, there: np.ndarray, before: np.ndarray, size: int) -> np.ndarray:
    """-inf for tokens that would be the last of `size` that stand in the row of `there` already."""
    changed = scores.copy()
    if size > there.shape[1]:
        return changed
    windows = np.lib.stride_tricks.sliding_window_view(there, size, axis=1)
    last = before[:, None, before.shape[1] - size + 1 :]
    for row, again in enumerate((windows[..., :-1] == last).all(-1)):
        changed[row, windows[row, again, -1]] = -np.inf
    return changed


def _without_sequence(scores: np.ndarray, before: np.ndarray, sequence: tuple[int, ...]) -> np.ndarray:
    """-inf for the last token of a sequence where its others are the last of the row."""
    *first, last = sequence
    if len(first) > before.shape[1]:
        return scores
    changed = scores.copy()
    changed[(before[:, before.shape[1] - len(first) :] == first).all(-1), last] = -np.inf
    return changed


def warped(scores: np.ndarray, settings: Settings, fewest: int = 1) -> np.ndarray:
    """Scores at a temperature, -inf for tokens that are not drawn; `fewest` tokens are left of each row at least."""
    if settings.temperature != 1:
        scores = scores / np.float32(settings.temperature)
    if settings.top_k:
        scores = _best(scores, max(settings.top_k, fewest))
    if settings.top_p < 1:
        scores = _nucleus(scores, settings.top_p, fewest)
    if settings.min_p:
        likely = softmax(scores)
        scores = _above(scores, settings.min_p * likely.max(-1, keepdims=True), fewest)
    if settings.typical_p < 1:
        scores = _typical(scores, settings.typical_p, fewest)
    if settings.epsilon_cutoff:
        scores = _above(scores, np.float32(settings.epsilon_cutoff), fewest)
    if settings.eta_cutoff:
        eta = np.float32(settings.eta_cutoff)
        scores = _above(scores, np.minimum(eta, np.sqrt(eta) * np.exp(-_entropy(scores))), fewest)
    return scores


def _best(scores: np.ndarray, count: int) -> np.ndarray:
    """The `count` highest scores and their equals; -inf for the rest."""
    return np.where(scores < _best_but(scores, count), -np.inf, scores)


def _best_but(scores: np.ndarray, count: int) -> np.ndarray:
    """The least of the `count` highest scores of each row, f32[rows, 1]."""
    if count >= scores.shape[-1]:
        return scores.min(-1, keepdims=True)
    return np.partition(scores, -count, -1)[:, -count, None]


def _nucleus(scores: np.ndarray, share: float, fewest: int) -> np.ndarray:
    """The most likely tokens, as many as have `share` of the probability; -inf for the rest."""
    order = scores.argsort(-1, kind="stable")
    rising = softmax(np.take_along_axis(scores, order, -1)).cumsum(-1)
    drop = rising <= np.float32(1 - share)
    drop[:, -fewest:] = False
    dropped = np.empty_like(drop)
    np.put_along_axis(dropped, order, drop, -1)
    return np.where(dropped, -np.inf, scores)


def _typical(scores: np.ndarray, share: float, fewest: int) -> np.ndarray:
    """The tokens that tell about as much as is to be expected, as many as have `share` of the probability."""
    apart = np.abs(-log_softmax(scores) - _entropy(scores))
    order = apart.argsort(-1, kind="stable")
    likely = softmax(np.take_along_axis(scores, order, -1)).cumsum(-1)
    last = (likely < np.float32(share)).sum(-1, keepdims=True).clip(max=scores.shape[-1] - 1)
    farthest = np.take_along_axis(np.take_along_axis(apart, order, -1), last, -1)
    drop = apart > farthest
    np.put_along_axis(drop, order[:, :fewest], False, -1)
    return np.where(drop, -np.inf, scores)


def _above(scores: np.ndarray, least: np.ndarray | np.float32, fewest: int) -> np.ndarray:
    """The tokens of a probability of `least`, or the most likely ones."""
    drop = (softmax(scores) < least) & (scores < _best_but(scores, fewest))
    return np.where(drop, -np.inf, scores)


def _entropy(scores: np.ndarray) -> np.ndarray:
    """f32[rows, 1], in nats."""
    logarithms = log_softmax(scores)
    with np.errstate(invalid="ignore"):  # 0 times -inf
        return -np.nansum(logarithms * np.exp(logarithms), -1, keepdims=True)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities, f32[rows, vocabulary]."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """The logarithms of probabilities, f32[rows, vocabulary]."""
    centered = scores - scores.max(-1, keepdims=True)
    return centered - np.log(np.exp(centered).sum(-1, keepdims=True))
