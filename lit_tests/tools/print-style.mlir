// RUN: pipeline-opt %s | FileCheck %s --check-prefix=PLAIN
// RUN: pipeline-opt %s --mlir-elide-elementsattrs-if-larger=3 | FileCheck %s --check-prefix=ELEMENTS
// RUN: pipeline-opt %s --mlir-elide-resource-strings-if-larger=4 | FileCheck %s --check-prefix=RESOURCE
// RUN: pipeline-opt %s --mlir-print-debuginfo | FileCheck %s --check-prefix=DEBUG
// RUN: pipeline-opt %s --mlir-pretty-debuginfo | FileCheck %s --check-prefix=PRETTY
// RUN: pipeline-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: pipeline-opt %s --mlir-print-local-scope | FileCheck %s --check-prefix=LOCAL

// PLAIN: #[[MAP:.*]] = affine_map<(d0) -> (d0 + 1)>
// PLAIN: dense<[1, 2, 3, 4]> : tensor<4xi32>
// PLAIN-NOT: loc(
// PLAIN: blob: "0x04000000010000000200000003000000"

// ELEMENTS: dense_resource<__elided__> : tensor<4xi32>
// RESOURCE-NOT: blob: "0x04000000010000000200000003000000"
// DEBUG: loc("{{.*}}print-style.mlir":25:8)
// PRETTY: arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32> {{.*}}print-style.mlir:25:8
// GENERIC: "func.func"() <{function_type = () -> (tensor<4xi32>, tensor<3xi32>), sym_name = "f"}>
// LOCAL-NOT: #map
// LOCAL: map = affine_map<(d0) -> (d0 + 1)>

#map = affine_map<(d0) -> (d0 + 1)>

func.func @f() -> (tensor<4xi32>, tensor<3xi32>) attributes {map = #map} {
  %x = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %y = arith.constant dense_resource<blob> : tensor<3xi32>
  return %x, %y : tensor<4xi32>, tensor<3xi32>
}

{-#
  dialect_resources: {
    builtin: {
      blob: "0x04000000010000000200000003000000"
    }
  }
#-}
