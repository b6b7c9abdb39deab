//===- GraphWindowOps.td - windows of images, scatters ----------------------===//
//
// What convolutions, pools and scatters are made of.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_GRAPHWINDOWOPS
#define DSOPT_DIALECT_GRAPH_GRAPHWINDOWOPS

include "dsopt/Dialect/Graph/GraphBase.td"

def Graph_WindowsOp : Graph_PureOp<"windows"> {
  let summary = "the elements under each place of a window that moves over some dimensions";
  let description = [{
    The dimensions from `axis` on, as many as the lists have entries, are windowed.
    `[before..., size..., after...] -> [before..., count..., kernel..., after...]` with
    `result[o, k] = input[o * stride + k * dilation - low]`, and `value` where that lies
    outside. `lows` is the padding before the first element.
  }];
  let arguments = (ins Graph_Tensor:$input, I64Attr:$axis, DenseI64ArrayAttr:$counts,
                       DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$lows,
                       TypedAttrInterface:$value);
  let results = (outs Graph_Tensor:$result);
}

class Graph_WindowsAdjoint<string mnemonic, string what> : Graph_ShapedOp<mnemonic> {
  let summary = what;
  let arguments = (ins Graph_FloatTensor:$input, I64Attr:$axis, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$lows);
  let results = (outs Graph_FloatTensor:$result);
}
def Graph_WindowsSumOp : Graph_WindowsAdjoint<"windows_sum",
    "each element's sum over the windows it is in; the adjoint of windows"> {
  let description = [{
    `[before..., count..., kernel..., after...] -> [before..., size..., after...]`; what a
    window holds outside of the result is dropped.
  }];
}
def Graph_WindowsPlaceOp : Graph_WindowsAdjoint<"windows_place",
    "each element of a window at its place, zeros elsewhere"> {
  let description = [{
    `[before..., count..., kernel..., after...] -> [before..., size..., after..., kernel...]`:
    the sum over the last dimensions is windows_sum.
  }];
}

def Graph_ScatterOp : Graph_PureOp<"scatter"> {
  let summary = "rows of data, of which those that indices name are changed";
  let description = [{
    `data` is `[N, W]`, `indices` are `[M]`, `updates` are `[M, W]`. Row `indices[m]`
    (negative ones count from the end) is set to updates[m], or `mode` says how the two are
    combined: `set`, `add`, `mul`, `min` or `max`, in the order of m. An index outside
    changes nothing.
  }];
  let arguments = (ins Graph_Tensor:$data, Graph_IntTensor:$indices, Graph_Tensor:$updates, Dsopt_ScatterMode:$mode);
  let assemblyFormat = "$mode operands attr-dict `:` functional-type(operands, results)";
  let results = (outs Graph_Tensor:$result);
}

#endif // DSOPT_DIALECT_GRAPH_GRAPHWINDOWOPS
