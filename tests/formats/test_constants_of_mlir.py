"""Constants of MLIR text are weights, with the elements that the text has, however it writes them."""

import numpy as np
import pytest
import torch

import pipeline
from pipeline.mlir import context, ir

TEXT = """func.func @main(%x: tensor<COUNTxTYPE>) -> tensor<COUNTxTYPE> {
  %c = arith.constant ELEMENTS : tensor<COUNTxTYPE>
  %e = tensor.empty() : tensor<COUNTxTYPE>
  %r = linalg.mul ins(%x, %c : tensor<COUNTxTYPE>, tensor<COUNTxTYPE>) outs(%e : tensor<COUNTxTYPE>)
      -> tensor<COUNTxTYPE>
  return %r : tensor<COUNTxTYPE>
}"""

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
BITS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32, torch.float64: torch.int64}


def elements(dtype: torch.dtype, count: int) -> torch.Tensor:
    """Numbers of all magnitudes, of which seven digits do not say each, zeros, infinities and no numbers."""
    torch.manual_seed(0)
    numbers = torch.randn(count, dtype=torch.float64) * 10.0 ** torch.randint(-6, 4, (count,))
    numbers[:6] = torch.tensor([1.0078125, 0.0, -0.0, float("inf"), float("-inf"), float("nan")])
    return numbers.to(dtype)


@pytest.mark.parametrize("count", [7, 300], ids=["numbers", "hexadecimal"])
@pytest.mark.parametrize("kind", DTYPES)
def test_elements(kind: str, count: int) -> None:
    dtype = DTYPES[kind]
    wanted = elements(dtype, count)
    bits = wanted.view(BITS[dtype]).numpy()
    with context():
        element = {"f16": ir.F16Type, "bf16": ir.BF16Type, "f32": ir.F32Type, "f64": ir.F64Type}[kind].get()
        constant = str(ir.DenseElementsAttr.get(bits, type=element)).rpartition(" : ")[0]
    text = TEXT.replace("ELEMENTS", constant).replace("COUNT", str(count)).replace("TYPE", kind)
    compiled = pipeline.compile(text, cache=False)
    (weight,) = compiled.weights.values()
    is_number = ~torch.isnan(wanted).numpy()
    assert np.array_equal(np.asarray(weight).view(bits.dtype)[is_number], bits[is_number])
    result = compiled(torch.ones(count, dtype=dtype))
    torch.testing.assert_close(torch.as_tensor(result), wanted, rtol=0, atol=0, equal_nan=True)


def test_types_that_calls_do_not_take_are_no_weights() -> None:
    text = TEXT.replace("ELEMENTS", "dense<[1, 2, 3]>").replace("COUNT", "3").replace("TYPE", "i32")
    compiled = pipeline.compile(text, cache=False)
    assert not compiled.weights
    assert compiled(np.array([4, 5, 6], np.int32)).tolist() == [4, 10, 18]
