// Names that are taken are refused, with both owners.

// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/clash_builtin.py 2>&1 | FileCheck %s --check-prefix=BUILTIN
// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/clash_mlir.py 2>&1 | FileCheck %s --check-prefix=MLIR
// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/marks.py --load-plugin=%S/Inputs/clash_marks.py 2>&1 | FileCheck %s --check-prefix=PLUGINS
// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/broken.py 2>&1 | FileCheck %s --check-prefix=BROKEN
// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/no_such_plugin.py 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --load-plugin=%S/Inputs/marks.py --test-mark | FileCheck %s --check-prefix=TWICE

// BUILTIN: {{^}}pipeline-opt: error: two passes are called 'remove-unused-results': that of {{.*}}clash_builtin.py and that of pipeline.passes.tensor.remove_unused_results{{$}}
// MLIR: {{^}}pipeline-opt: error: two passes are called 'canonicalize': that of {{.*}}clash_mlir.py and that of MLIR{{$}}
// PLUGINS: {{^}}pipeline-opt: error: two passes are called 'test-mark': that of {{.*}}clash_marks.py and that of {{.*}}marks.py{{$}}
// BROKEN: {{^}}pipeline-opt: error: plugin {{.*}}broken.py: ZeroDivisionError: division by zero ({{.*}}broken.py:3){{$}}
// MISSING: {{^}}pipeline-opt: error: plugin {{.*}}no_such_plugin.py: not a Python file{{$}}
// TWICE: attributes {marked}
func.func @f() { return }
