"""Who generates: PyTorch itself, this project, llama.cpp, OpenVINO, ONNX Runtime; a call is a step or a prompt.

A step puts its token to the same slot each time. Each contestant quantizes weights in its own way, within what the
workload allows; the error and the divergence say how far that is off.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from contestants import CONTESTANTS, Contestant, Job, Run

if TYPE_CHECKING:
    import numpy as np
    from language_workloads import Numbers

#: How many tokens caches of a fixed size have room for.
SLOTS = 2048


def _numbers(job: Job) -> Numbers:
    return job.model.numbers


class EagerDecoder(Contestant):
    """PyTorch, op by op, with transformers' growing cache; integers are computed as f32."""

    runs_python = True

    def build(self, captured: Any, job: Job) -> Run:
        import torch
        from transformers.cache_utils import DynamicCache

        decoder = captured.decoder.bfloat16() if _numbers(job).bits == 16 else captured.decoder
        filled, ids = job.inputs
        cache = DynamicCache()
        if filled.shape[1]:
            decoder(filled, past_key_values=cache, logits_to_keep=1)

        def run() -> torch.Tensor:
            if not filled.shape[1]:
                return decoder(ids, past_key_values=DynamicCache(), logits_to_keep=1).logits[:, -1].float()
            logits = decoder(ids, past_key_values=cache).logits[:, -1].float()
            cache.crop(-ids.shape[1])
            return logits

        return run


class PipelineDecoder(Contestant):
    """This project."""

    packages, modules = CONTESTANTS["pipeline"].packages, CONTESTANTS["pipeline"].modules

    #: What `pipeline.generation.compile` is told, by bits.
    options: Mapping[int, Mapping[str, Any]] = MappingProxyType(
        {32: {}, 16: {}, 8: {"weights": "int8"}, 4: {"weights": "int4"}}
    )

    def settings(self, own: Path, common: Path) -> dict[str, str]:
        return {"PIPELINE_CACHE_SIZE": "0"}

    def build(self, captured: Any, job: Job) -> Run:
        import numpy as np

        import pipeline.generation

        numbers = _numbers(job)
        decoder = captured.decoder.bfloat16() if numbers.bits == 16 else captured.decoder
        options = dict(self.options[numbers.bits])
        if numbers.group is not None:
            options["group"] = numbers.group
        elif numbers.quantized_data:
            options["activations"] = "int8"
        model = pipeline.generation.compile(decoder, SLOTS, num_threads=job.threads, **options)
        filled, ids = (one.numpy() for one in job.inputs)
        padding, slots = np.zeros(1, np.int64), np.arange(filled.shape[1] + 1)
        if not filled.shape[1]:
            return lambda: model.prefill(ids, padding)
        model.prefill(filled, padding)
        return lambda: model.decode(ids, padding, slots)


class LlamaCpp(Contestant):
    """llama.cpp through its C functions; its products of integers quantize data in any case."""

    packages = ("llama-cpp-python", "gguf")
    modules = ("llama_cpp", "gguf")

    #: The kinds of its weights, by bits.
    _KINDS: Mapping[int, str] = MappingProxyType({32: "F32", 16: "BF16", 8: "Q8_0", 4: "Q4_0"})

    def capture(self, job: Job) -> Any:
        path = str(job.folder / "model.gguf")
        _write_gguf(job.model.decoder, path, self._KINDS[_numbers(job).bits])
        return path

    def build(self, captured: Any, job: Job) -> Run:
        import llama_cpp as library
        import numpy as np

        self._log = library.llama_log_callback(lambda level, text, user: None)
        library.llama_log_set(self._log, ctypes.c_void_p(0))
        library.llama_backend_init()
        of_model, of_context = library.llama_model_default_params(), library.llama_context_default_params()
        of_model.use_mmap = False
        of_context.n_ctx, of_context.n_batch, of_context.n_ubatch = SLOTS, SLOTS, 512
        of_context.n_threads = of_context.n_threads_batch = job.threads
        model = library.llama_model_load_from_file(captured.encode(), of_model)
        context = library.llama_init_from_model(model, of_context)
        memory = library.llama_get_memory(context)
        filled, ids = (one[0].tolist() for one in job.inputs)
        batch = _batch(library, ids, len(filled))
        vocabulary = job.model.decoder.config.vocab_size
        if filled and library.llama_decode(context, _batch(library, filled, 0)):
            raise RuntimeError("llama_decode failed")

        def run() -> np.ndarray:
            library.llama_memory_seq_rm(memory, 0, len(filled), -1)
            if library.llama_decode(context, batch):
                raise RuntimeError("llama_decode failed")
            return np.ctypeslib.as_array(library.llama_get_logits_ith(context, -1), (1, vocabulary))

        return run


class OpenVinoDecoder(Contestant):
    """OpenVINO with the cache as its state, from optimum-intel, which exports the model and compresses its weights."""

    packages = ("openvino", "optimum-intel", "nncf")
    modules = ("openvino", "optimum.intel")

    def capture(self, job: Job) -> Any:
        from optimum.intel import OVModelForCausalLM, OVWeightQuantizationConfig

        numbers, folder = _numbers(job), str(job.folder / "model")
        job.model.decoder.save_pretrained(folder)
        how = {"load_in_8bit": False}
        if numbers.bits < 16:
            kind = {"bits": numbers.bits, "sym": True}
            if numbers.bits == 4:
                kind |= {"group_size": numbers.group, "ratio": 1.0, "all_layers": True}
            how = {"quantization_config": OVWeightQuantizationConfig(**kind)}
        model = OVModelForCausalLM.from_pretrained(folder, export=True, compile=False, **how)
        return model.model

    def build(self, captured: Any, job: Job) -> Run:
        import numpy as np
        import openvino

        numbers = _numbers(job)
        settings: dict[str, Any] = {
            "INFERENCE_NUM_THREADS": job.threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if numbers.bits == 16 else "f32",
            "ENABLE_CPU_PINNING": False,
        }
        if numbers.bits < 16 and not numbers.quantized_data:
            settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
        request = openvino.Core().compile_model(captured, "CPU", settings).create_infer_request()
        names = {one.any_name for one in captured.inputs}
        filled, ids = (one.numpy() for one in job.inputs)

        def infer(tokens: np.ndarray, first: int) -> np.ndarray:
            end = first + tokens.shape[1]
            feed = {
                "input_ids": tokens,
                "attention_mask": np.ones((1, end), np.int64),
                "position_ids": np.arange(first, end)[None],
                "beam_idx": np.zeros(1, np.int32),
            }
            return request.infer({name: value for name, value in feed.items() if name in names})[0][:, -1]

        def run() -> np.ndarray:
            for state, kept in zip(request.query_state(), before, strict=True):
                state.state = kept
            return infer(ids, filled.shape[1])

        if filled.shape[1]:
            infer(filled, 0)
            before = [openvino.Tensor(state.state.data.copy()) for state in request.query_state()]
            return run
        return lambda: (request.reset_state(), infer(ids, 0))[1]


class OnnxRuntimeGenai(Contestant):
    """ONNX Runtime's generation, from its own builder of models; integers are MatMulNBits."""

    packages = ("onnxruntime-genai", "onnxruntime", "onnx-ir")
    modules = ("onnxruntime_genai", "onnxruntime_genai.models.builder")

    #: What the builder calls floats and integers of so many bits; its products of bf16 are for GPUs.
    kinds: Mapping[int, str] = MappingProxyType({32: "fp32", 8: "int8", 4: "int4"})

    def capture(self, job: Job) -> Any:
        numbers = _numbers(job)
        if numbers.bits not in self.kinds:
            raise ValueError(f"onnxruntime-genai has no weights of {numbers.bits} bits on CPUs")
        from onnxruntime_genai.models.builder import create_model, parse_extra_options

        source, target, cache = (str(job.folder / name) for name in ("model", "onnx", "cache"))
        job.model.decoder.save_pretrained(source)
        how = []
        if numbers.bits < 16:
            how = [f"accuracy_level={4 if numbers.quantized_data else 1}", "is_symmetric=true"]
            how += [] if numbers.group is None else [f"block_size={numbers.group}"]
        given = ("", source, target, self.kinds[numbers.bits], "cpu", cache)
        with _no_tokenizer():
            create_model(*given, **parse_extra_options(*given, how))
        return target

    def build(self, captured: Any, job: Job) -> Run:
        import onnxruntime_genai

        settings = onnxruntime_genai.Config(captured)
        settings.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": job.threads}}}}))
        model = onnxruntime_genai.Model(settings)
        parameters = onnxruntime_genai.GeneratorParams(model)
        parameters.set_search_options(max_length=SLOTS, past_present_share_buffer=True)
        generator = onnxruntime_genai.Generator(model, parameters)
        filled, ids = (one.numpy().astype("int32") for one in job.inputs)
        if filled.shape[1]:
            generator.append_tokens(filled)

        def run() -> np.ndarray:
            generator.rewind_to(filled.shape[1])
            generator.append_tokens(ids)
            logits = generator.get_logits()
            return logits.reshape(1, -1, logits.shape[-1])[:, -1]

        return run


@contextlib.contextmanager
def _no_tokenizer() -> Iterator[None]:
    """Has the builder, which copies tokenizers, go without one meanwhile."""
    from onnxruntime_genai.models.builders.base import Model

    copied = Model.save_processing
    Model.save_processing = lambda *args, **kwargs: None
    try:
        yield
    finally:
        Model.save_processing = copied


def _write_gguf(decoder: Any, path: str, kind: str) -> None:
    """A Llama of transformers as llama.cpp reads it: `kind` is that of its matrices."""
    import gguf

    config = decoder.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("no_vocab")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in decoder.state_dict().items():
        array = tensor.numpy()
        for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if part in name:
                array = _rotated_in_pairs(array, heads)
        target = names.get_name(name, try_suffixes=(".weight",))
        quantized = gguf.GGMLQuantizationType[kind if array.ndim > 1 else "F32"]
        writer.add_tensor(target, gguf.quants.quantize(array, quantized), raw_dtype=quantized)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _rotated_in_pairs(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a projection so that numbers that rotate together, halves of a head to transformers, are neighbours."""
    import numpy as np

    rows = weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2)
    return np.ascontiguousarray(rows.reshape(weight.shape))


def _batch(library: Any, ids: list[int], first: int) -> Any:
    """Tokens at the slots from `first` on, with logits of the last one."""
    batch = library.llama_batch_init(len(ids), 0, 1)
    batch.n_tokens = len(ids)
    for number, token in enumerate(ids):
        batch.token[number], batch.pos[number] = token, first + number
        batch.n_seq_id[number], batch.seq_id[number][0] = 1, 0
        batch.logits[number] = number == len(ids) - 1
    return batch


DECODERS: dict[str, Contestant] = {
    "eager": EagerDecoder(),
    "pipeline": PipelineDecoder(),
    "llama.cpp": LlamaCpp(),
    "openvino": OpenVinoDecoder(),
    "onnxruntime-genai": OnnxRuntimeGenai(),
}
