// Everything wrong with a pipeline or an option is one line, before anything runs.

// RUN: not pipeline-opt %s --pass-pipeline="canonicalise" 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: {{^}}pipeline-opt: error: pass pipeline, column 1: unknown pass 'canonicalise'; did you mean 'canonicalize'?{{$}}
// NAME-NOT: {{.}}

// RUN: not pipeline-opt %s --canonicalise 2>&1 | FileCheck %s --check-prefix=FLAG
// FLAG: {{^}}pipeline-opt: error: unknown option '--canonicalise'; did you mean '--canonicalize'?{{$}}

// RUN: not pipeline-opt %s --split-input-fil 2>&1 | FileCheck %s --check-prefix=DRIVER
// DRIVER: {{^}}pipeline-opt: error: unknown option '--split-input-fil'; did you mean '--split-input-file'?{{$}}

// RUN: not pipeline-opt %s --canonicalize=top-dwon=false 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: pipeline-opt: error: pass pipeline, column 16: pass 'canonicalize': no option 'top-dwon'; did you mean 'top-down'?

// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-mark=lable=x 2>&1 | FileCheck %s --check-prefix=OURS
// OURS: pipeline-opt: error: pass pipeline, column 16: pass 'test-mark': no option 'lable'; did you mean 'label'?

// RUN: not pipeline-opt %s --pass-pipeline="func.func(one-shot-bufferize)" 2>&1 | FileCheck %s --check-prefix=NESTING
// NESTING: pipeline-opt: error: pass pipeline, column 11: pass 'one-shot-bufferize' runs on 'builtin.module' and cannot be nested in 'func.func'

// RUN: not pipeline-opt %s --pass-pipeline="func.fun(cse)" 2>&1 | FileCheck %s --check-prefix=ANCHOR
// ANCHOR: pipeline-opt: error: pass pipeline: nested in 'func.fun', which is no op

// RUN: not pipeline-opt %s --pass-pipeline="builtin.module(cse" 2>&1 | FileCheck %s --check-prefix=PAREN
// PAREN: pipeline-opt: error: pass pipeline, column 19: expected ')'

// RUN: not pipeline-opt %s --pass-pipeline=cse --canonicalize 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: pipeline-opt: error: '--canonicalize' cannot be used together with '--pass-pipeline'

// RUN: not pipeline-opt %s --verify-each=maybe 2>&1 | FileCheck %s --check-prefix=BOOL
// BOOL: pipeline-opt: error: argument --verify-each: takes true or false, not 'maybe'

func.func @f() { return }
