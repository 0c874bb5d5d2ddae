// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-mark=only=f --remarks-filter="test-.*" -o %t 2>&1 | FileCheck %s
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-mark=only=f --remarks-filter="test-.*" --remark-format=yaml -o %t 2>&1 | FileCheck %s --check-prefix=YAML
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-mark=only=f --remarks-filter="test-.*" --remark-format=yaml --remarks-output-file=%t.yaml | FileCheck %s --check-prefix=QUIET
// RUN: FileCheck %s --check-prefix=YAML --input-file %t.yaml
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-mark=only=f --remarks-filter=missed -o %t 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-mark=only=f --remarks-filter="test-.*/missed/-" -o %t 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-mark --remarks-filter=other 2>&1 | FileCheck %s --check-prefix=QUIET
// RUN: not pipeline-opt %s --remarks-filter="(" 2>&1 | FileCheck %s --check-prefix=REGEX

// CHECK: {{.*}}remarks.mlir:{{[0-9]+}}: passed: marked 'marked' [test-mark, func.func]
// CHECK-NEXT: a.py:3: missed: it is not listed [test-mark, func.func]

// KIND-NOT: passed
// KIND: a.py:3: missed: it is not listed [test-mark, func.func]

// YAML: --- !Passed
// YAML-NEXT: Pass: test-mark
// YAML-NEXT: Name: func.func
// YAML-NEXT: DebugLoc:
// YAML-NEXT: File: {{.*}}remarks.mlir
// YAML-NEXT: Line: {{[0-9]+}}
// YAML-NEXT: Column: 0
// YAML-NEXT: Args:
// YAML-NEXT: - String: marked 'marked'
// YAML-NEXT: ...
// YAML-NEXT: --- !Missed
// YAML: File: a.py
// YAML-NEXT: Line: 3

// QUIET-NOT: test-mark
// QUIET: func.func @f()
// QUIET-NOT: test-mark
// REGEX: pipeline-opt: error: --remarks-filter: '(' is no regular expression
func.func @f() { return }
func.func @g() { return } loc("forward"("a.py":3:7))
