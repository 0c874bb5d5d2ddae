// RUN: pipeline-opt %s --split-input-file --verify-diagnostics

func.func @operand_types(%x: tensor<4xf32>) {
  // expected-error @below {{has operands of types (tensor<4xf32>), its block takes (index)}}
  "fusion.group"(%x) ({
  ^bb0(%a: index):
    "fusion.yield"() : () -> ()
  }) {kind = "elementwise", label = "x"} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @result_types(%x: tensor<4xf32>) -> tensor<4xf64> {
  // expected-error @below {{has results of types (tensor<4xf64>), its block yields (tensor<4xf32>)}}
  %r = "fusion.group"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"(%a) : (tensor<4xf32>) -> ()
  }) {kind = "elementwise", label = "x"} : (tensor<4xf32>) -> tensor<4xf64>
  return %r : tensor<4xf64>
}

// -----

func.func @no_yield(%x: tensor<4xf32>) {
  // expected-error @below {{must end with 'fusion.yield'}}
  "fusion.group"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    %e = math.exp %a : tensor<4xf32>
  }) {kind = "elementwise", label = "x"} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @no_kind(%x: tensor<4xf32>) {
  // expected-error @below {{needs the string attribute 'kind'}}
  "fusion.group"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"() : () -> ()
  }) {label = "x"} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @label_is_no_string(%x: tensor<4xf32>) {
  // expected-error @below {{needs the string attribute 'label'}}
  "fusion.group"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    "fusion.yield"() : () -> ()
  }) {kind = "elementwise", label = 1} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @no_block() {
  // expected-error @below {{expects one region with one block}}
  "fusion.group"() ({}) {kind = "elementwise", label = "x"} : () -> ()
  return
}

// -----

func.func @capture(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{reads a value from outside that is not an operand}}
  %r = "fusion.group"() ({
    %e = math.exp %x : tensor<4xf32>
    "fusion.yield"(%e) : (tensor<4xf32>) -> ()
  }) {kind = "elementwise", label = "x"} : () -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @yield_outside() {
  // expected-error @below {{'fusion.yield' op expects to be inside a 'fusion.group'}}
  "fusion.yield"() : () -> ()
}

// -----

func.func @barrier_between_types(%x: tensor<4xf32>) -> tensor<?xf32> {
  // expected-error @below {{'fusion.barrier' op takes a tensor<4xf32> and gives a tensor<?xf32>}}
  %r = "fusion.barrier"(%x) : (tensor<4xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

func.func @barrier_of_two(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'fusion.barrier' op takes one value and gives one}}
  %r = "fusion.barrier"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
