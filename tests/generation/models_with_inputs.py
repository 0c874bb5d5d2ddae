"""Small random models of transformers that read images or speech, with two rows of what they read."""

from __future__ import annotations

import torch
import transformers as tf
from generation.small_models import VOCABULARY

#: The tokens in whose places images and sounds stand, and those around an image.
IMAGE, AUDIO, VIDEO, BEGIN, END = VOCABULARY, VOCABULARY + 1, VOCABULARY + 2, VOCABULARY + 3, VOCABULARY + 4

#: Of prompts, with two tokens at the start of the first row that are padding.
LENGTH, PADDING = 56, 2

_TEXT = {
    "vocab_size": VOCABULARY + 5,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
    "tie_word_embeddings": False,
}
_VISION = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}
_TOKENS = {"image_token_id": IMAGE, "image_token_index": IMAGE}
_PIXELS = (3, 32, 32)

#: Heads of three directions, and an image by the patches that it has in each.
_THREE_DIRECTIONS = {"rope_parameters": {"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0}}
_PATCHES = {"depth": 2, "num_heads": 4, "patch_size": 8, "spatial_merge_size": 2, "temporal_patch_size": 2}
_AROUND = {"image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": BEGIN, "vision_end_token_id": END}


def _prompts(placeholders, token=IMAGE):
    """Two rows of text around what stands for an image, one with padding; a mask."""
    ids = torch.randint(3, VOCABULARY, (2, LENGTH))
    ids[:, 6 : 6 + placeholders] = token
    mask = torch.ones_like(ids)
    ids[0, :PADDING], mask[0, :PADDING] = 0, 0
    return {"input_ids": ids, "attention_mask": mask}


def _llava():
    vision = tf.CLIPVisionConfig(**_VISION, projection_dim=32)
    config = tf.LlavaConfig(text_config=tf.LlamaConfig(**_TEXT), vision_config=vision, **_TOKENS)
    return tf.LlavaForConditionalGeneration(config), _prompts(16) | {"pixel_values": torch.randn(2, *_PIXELS)}


def _llava_next():
    """Parts of an image, as many as its size asks for."""
    vision = tf.CLIPVisionConfig(**_VISION, projection_dim=32)
    shapes = [[32, 32], [32, 64]]
    text = tf.LlamaConfig(**_TEXT)
    config = tf.LlavaNextConfig(text_config=text, vision_config=vision, image_grid_pinpoints=shapes, **_TOKENS)
    read = {"pixel_values": torch.randn(2, 2, *_PIXELS), "image_sizes": torch.tensor([[32, 32]] * 2)}
    return tf.LlavaNextForConditionalGeneration(config), _prompts(16 + 16 + 4) | read


def _gemma3():
    """Tokens of an image see those behind them, too."""
    layers = {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]}
    around = {"boi_token_index": BEGIN, "eoi_token_index": END, "mm_tokens_per_image": 4}
    text, vision = tf.Gemma3TextConfig(**_TEXT, **layers), tf.SiglipVisionConfig(**_VISION)
    config = tf.Gemma3Config(text_config=text, vision_config=vision, **_TOKENS, **around)
    read = _prompts(4)
    read |= {"pixel_values": torch.randn(2, *_PIXELS), "token_type_ids": (read["input_ids"] == IMAGE).long()}
    return tf.Gemma3ForConditionalGeneration(config), read


def _smolvlm():
    text = tf.LlamaConfig(**_TEXT)
    config = tf.SmolVLMConfig(text_config=text, vision_config=_VISION, **_TOKENS, scale_factor=2, pad_token_id=0)
    seen = torch.ones(2, 1, 32, 32, dtype=torch.int64)
    seen[1, :, :, 24:] = 0
    read = {"pixel_values": torch.randn(2, 1, *_PIXELS), "pixel_attention_mask": seen}
    return tf.SmolVLMForConditionalGeneration(config), _prompts(4) | read


def _of_patches(model, config, **vision):
    """Two images of 4 × 4 and of 2 × 4 patches in each row, of which four are a token."""
    vision_config = {"hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 32, **_PATCHES, **vision}
    made = config(text_config=_TEXT | _THREE_DIRECTIONS, vision_config=vision_config, **_AROUND)
    read = _prompts(4)
    ids = read["input_ids"]
    ids[:, 5], ids[:, 10] = BEGIN, END
    ids[:, 19], ids[:, 20:22], ids[:, 22] = BEGIN, IMAGE, END
    grid = torch.tensor([[1, 4, 4], [1, 2, 4]] * 2)
    read |= {"pixel_values": torch.randn(2 * 24, 3 * 2 * 64), "image_grid_thw": grid}
    return model(made), read | {"mm_token_type_ids": (ids == IMAGE).int()}


def _qwen2_vl():
    return _of_patches(tf.Qwen2VLForConditionalGeneration, tf.Qwen2VLConfig, embed_dim=32, mlp_ratio=2)


def _qwen2_5_vl():
    return _of_patches(
        tf.Qwen2_5_VLForConditionalGeneration, tf.Qwen2_5_VLConfig, window_size=32, fullatt_block_indexes=[1]
    )


def _qwen3_vl():
    return _of_patches(
        tf.Qwen3VLForConditionalGeneration,
        tf.Qwen3VLConfig,
        num_position_embeddings=16,
        deepstack_visual_indexes=[0],
    )


def _lfm2_vl():
    """Layers with states behind images."""
    text = tf.Lfm2Config(**_TEXT, layer_types=["conv", "full_attention"])
    vision = {name: value for name, value in _VISION.items() if name != "image_size"} | {"num_patches": 16}
    config = tf.Lfm2VlConfig(text_config=text, vision_config=vision, image_token_id=IMAGE, downsample_factor=2)
    read = {
        "pixel_values": torch.randn(2, 16, 192),
        "pixel_attention_mask": torch.ones(2, 16, dtype=torch.int64),
        "spatial_shapes": torch.tensor([[4, 4]] * 2),
    }
    return tf.Lfm2VlForConditionalGeneration(config), _prompts(4) | read


def _qwen2_audio():
    audio = {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48}
    audio |= {"num_mel_bins": 16, "max_source_positions": 40}
    text = tf.Qwen2Config(**_TEXT)
    config = tf.Qwen2AudioConfig(text_config=text, audio_config=audio, audio_token_id=AUDIO, audio_token_index=AUDIO)
    read = {"input_features": torch.randn(2, 16, 80), "feature_attention_mask": torch.ones(2, 80, dtype=torch.int64)}
    return tf.Qwen2AudioForConditionalGeneration(config), _prompts(20, AUDIO) | read


_DECODER = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 48,
    "pad_token_id": 1,
    "eos_token_id": None,
    "decoder_start_token_id": 3,
}
_ENCODER = {"encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48}
_BEHIND_AN_ENCODER = {"is_decoder": True, "add_cross_attention": True, "max_position_embeddings": 128}


def _whisper():
    lengths = {"max_source_positions": 50, "max_target_positions": 128}
    begun = {"suppress_tokens": None, "begin_suppress_tokens": None}
    config = tf.WhisperConfig(**_DECODER, **_ENCODER, **lengths, **begun, num_mel_bins=16)
    return tf.WhisperForConditionalGeneration(config), {"input_features": torch.randn(2, 16, 100)}


def _masked(length, filled):
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[1, filled:] = 0
    return mask


def _speech_to_text():
    """The encoder makes a mask of its own length."""
    lengths = {"max_source_positions": 200, "max_target_positions": 128}
    features = {"input_feat_per_channel": 16, "input_channels": 1, "conv_channels": 16}
    model = tf.Speech2TextForConditionalGeneration(tf.Speech2TextConfig(**_DECODER, **_ENCODER, **lengths, **features))
    return model, {"input_features": torch.randn(2, 80, 16), "attention_mask": _masked(80, 50)}


def _moonshine():
    """The encoder gives a mask, which steps read."""
    heads = {"encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4}
    layers = {"encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2, "max_position_embeddings": 128}
    tokens = {"decoder_start_token_id": 1, "pad_token_id": 0, "eos_token_id": None}
    config = tf.MoonshineConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, **heads, **layers, **tokens
    )
    read = {"input_values": torch.randn(2, 4000), "attention_mask": _masked(4000, 2500)}
    return tf.MoonshineForConditionalGeneration(config), read


def _of_pixels(encoder, decoder):
    config = tf.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 3, 1, None
    return tf.VisionEncoderDecoderModel(config), {"pixel_values": torch.randn(2, *_PIXELS)}


def _trocr():
    """Vectors of the encoder are wider than the decoder's."""
    config = tf.TrOCRConfig(**_DECODER | {"d_model": 24}, **_BEHIND_AN_ENCODER, cross_attention_hidden_size=32)
    return _of_pixels(tf.ViTConfig(**_VISION), config)


def _donut():
    windows = {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4}
    encoder = tf.DonutSwinConfig(image_size=32, patch_size=4, **windows)
    return _of_pixels(encoder, tf.MBartConfig(**_DECODER, **_BEHIND_AN_ENCODER))


_MODELS = {
    "llava": _llava,
    "llava_next": _llava_next,
    "gemma3": _gemma3,
    "smolvlm": _smolvlm,
    "qwen2_vl": _qwen2_vl,
    "qwen2_5_vl": _qwen2_5_vl,
    "qwen3_vl": _qwen3_vl,
    "lfm2_vl": _lfm2_vl,
    "qwen2_audio": _qwen2_audio,
    "whisper": _whisper,
    "speech_to_text": _speech_to_text,
    "moonshine": _moonshine,
    "trocr": _trocr,
    "donut": _donut,
}

#: Those that read prompts of text beside, and those that read no text.
DECODERS = tuple(_MODELS)[:9]
ENCODERS = tuple(_MODELS)[9:]


def model_with_inputs(name):
    """A model in evaluation whose tokens vary, with what is said in its file about two rows that it reads."""
    torch.manual_seed(0)
    model, read = _MODELS[name]()
    model.eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.normal_(0, 0.2)
    head = model.get_output_embeddings()
    head.weight = torch.nn.Parameter(torch.randn(head.weight.shape), requires_grad=False)
    config = model.generation_config
    config.eos_token_id, config.do_sample, config.num_beams = None, False, 1
    config.pad_token_id, config.decoder_start_token_id = 0, getattr(model.config, "decoder_start_token_id", None)
    return model, read


def rows(read, first, count):
    """What belongs to some rows of the two."""
    return {
        name: tensor.reshape(2, -1, *tensor.shape[1:])[first : first + count].flatten(0, 1)
        for name, tensor in read.items()
    }
