// RUN: pipeline-opt --show-dialects --load-plugin=%S/../dialects/Inputs/toy.py | FileCheck %s
// CHECK: Available Dialects: acc, affine,
// CHECK-SAME: , fusion,
// CHECK-SAME: , linalg,
// CHECK-SAME: , torch,
// CHECK-SAME: , toy,
