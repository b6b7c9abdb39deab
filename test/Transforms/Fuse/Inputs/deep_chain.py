"""A forward of so many sums, each of the one before: what an unrolled loop may be."""
import sys

count = int(sys.argv[1])
vector, both = "tensor<4xf32>", "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"
print(f"""module {{
  graph.parameter @w : {vector} from "m" at 0 bytes 16
  func.func @forward(%x: {vector}) -> tensor<f32> {{
    %w = graph.read @w : {vector}
    %v0 = graph.mul %w, %x : {both}""")
for at in range(count):
    print(f"    %v{at + 1} = graph.add %v{at}, %x : {both}")
print(f"""    %y = graph.mul %v{count}, %v{count} : {both}
    %l = graph.reduce_sum %y {{axes = array<i64: 0>}} : ({vector}) -> tensor<f32>
    return %l : tensor<f32>
  }}
}}""")
