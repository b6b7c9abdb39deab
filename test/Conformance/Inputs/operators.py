"""The operators that dsopt means to have, and what its tests have to know about each."""

LISTED = """
Abs Add And ArgMax ArgMin Attention AveragePool BatchNormalization Cast CastLike Ceil Celu Clip Concat Constant
ConstantOfShape Conv ConvTranspose Cos CumSum DepthToSpace Div Dropout Einsum Elu Equal Erf Exp Expand EyeLike
Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalMaxPool Greater
GreaterOrEqual GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN
LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul Max MaxPool Mean
MeanVarianceNormalization Min Mish Mod Mul Neg NegativeLogLikelihoodLoss NonZero Not OneHot Or PRelu Pad Pow RMSNormalization
RNN Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
ReduceSum ReduceSumSquare Relu Reshape Resize RotaryEmbedding Round ScatterElements ScatterND Selu SequenceAt
Shape Shrink Sigmoid Sign Sin Size Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split
SplitToSequence Sqrt Squeeze Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze
Where Xor
""".split()

# Inputs whose values decide shapes: they have to be known when the model is compiled.
CONSTANTS = {
    "ConstantOfShape": (0,),
    "CumSum": (1,),
    "Dropout": (1, 2),
    "Expand": (1,),
    "NonZero": (0,),
    "OneHot": (1,),
    "Pad": (1, 2, 3),
    "Range": (0, 1, 2),
    "ReduceL1": (1,),
    "ReduceL2": (1,),
    "ReduceLogSum": (1,),
    "ReduceLogSumExp": (1,),
    "ReduceMax": (1,),
    "ReduceMean": (1,),
    "ReduceMin": (1,),
    "ReduceProd": (1,),
    "ReduceSum": (1,),
    "ReduceSumSquare": (1,),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "SequenceAt": (1,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
}

# Cases whose gradients are not compared, and why.
NO_GRADIENT = {
    r"attention_.*(nan_robustness|fullymasked|negative_offset|gqa_rank4_mask).*_expanded":
        "rows of -inf before a softmax, whose derivative is NaN",
}

# Cases by name, and why they are not run.
SKIPPED = {
    r"range_.*_expanded": "a Loop, which is not available",
    r"training_dropout.*": "random numbers, which are the implementation's own",
}
