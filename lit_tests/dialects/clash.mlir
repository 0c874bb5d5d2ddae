// Names of dialects that are taken are refused, with both owners.

// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/clash_fusion.py 2>&1 | FileCheck %s --check-prefix=OURS
// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/clash_linalg.py 2>&1 | FileCheck %s --check-prefix=MLIR
// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/toy.py --load-plugin=%S/Inputs/clash_toy.py 2>&1 | FileCheck %s --check-prefix=PLUGINS

// OURS: pipeline-opt: error: two dialects are called 'fusion': that of {{.*}}clash_fusion.py and that of pipeline.dialects.fusion{{$}}
// MLIR: pipeline-opt: error: two dialects are called 'linalg': that of {{.*}}clash_linalg.py and that of MLIR{{$}}
// PLUGINS: pipeline-opt: error: two dialects are called 'toy': that of {{.*}}clash_toy.py and that of {{.*}}/toy.py{{$}}
func.func @f() { return }
