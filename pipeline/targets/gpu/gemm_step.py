"""The dispatch of a product that a library may compute → what the plan tells the library."""

from __future__ import annotations

from pipeline.ir.attributes import GEMM
from pipeline.mlir import ir, refusal, walk
from pipeline.passes.gpu.matmul.strided_gemm import Strides, cast_behind, read_product
from pipeline.runtime.device.gemm_descriptor import Gemm, Matrix
from pipeline.runtime.interface.storage_types import Stored


def read_gemm(dispatch: ir.Operation, stored: Stored) -> Gemm:
    """The product that a dispatch is; `stored` names the dtypes of a device's memory."""
    (generic,) = [op for op in walk(dispatch, "linalg.generic") if GEMM in op.attributes]
    product = read_product(generic, cast_behind(generic))
    if product is None:
        raise refusal(generic, "mark-library-gemm has marked what is no product of matrices")
    arguments = list(dispatch.regions[0].blocks[0].arguments)

    def matrix(strides: Strides) -> Matrix:
        return Matrix(arguments.index(strides.buffer), strides.offset, strides.rows, strides.columns, strides.batch)

    def dtype(strides: Strides) -> str:
        return stored(str(ir.MemRefType(strides.buffer.type).element_type))

    return Gemm(
        rows=product.rows,
        columns=product.columns,
        sum=product.sum,
        batch=product.batch,
        left=matrix(product.left),
        right=matrix(product.right),
        out=matrix(product.out),
        element=dtype(product.left),
        out_element=dtype(product.out),
        tf32=ir.StringAttr(generic.attributes[GEMM]).value == "tf32",
    )
