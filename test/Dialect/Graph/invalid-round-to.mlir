// RUN: dsopt-opt %s -split-input-file -verify-diagnostics

func.func @round_to(%x: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @below {{'graph.round_to' op rounds 'f16' to 'bf16', expected a narrower type of floating point}}
  %0 = graph.round_to %x {to = bf16} : (tensor<4xf16>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// -----

func.func @round_to_power_of_f64(%x: tensor<4xf64>) -> tensor<4xf64> {
  // expected-error @below {{'graph.round_to' op rounds 'f64' to 'f8E8M0FNU', expected f32}}
  %0 = graph.round_to %x {to = f8E8M0FNU} : (tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

func.func @round_to_byte_upwards(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'graph.round_to' op rounds up to 'f8E5M2', expected f8E8M0FNU}}
  %0 = graph.round_to %x {to = f8E5M2, toward = "up"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @round_to_the_left(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{attribute 'toward' failed to satisfy constraint: string attribute 'up' or 'down'}}
  %0 = graph.round_to %x {to = f8E8M0FNU, toward = "left"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
