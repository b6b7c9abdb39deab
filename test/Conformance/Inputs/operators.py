"""The operators that dsopt means to have, and what its tests have to know about each."""
import numpy as np

LISTED = """
Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization
Bernoulli BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast CastLike Ceil Celu CenterCropPad Clip
Col2Im Compress Concat ConcatFromSequence Constant ConstantOfShape Conv ConvTranspose Cos Cosh CumProd CumSum
DFT DeformConv DepthToSpace Det Div Dropout Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor GRU Gather
GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GridSample
GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity If InstanceNormalization
IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Loop LpNormalization LpPool
MatMul Max MaxPool MaxUnpool Mean MeanVarianceNormalization MelWeightMatrix Min Mish Mod Mul Multinomial Neg
NegativeLogLikelihoodLoss NonZero Not OneHot Optional OptionalGetElement OptionalHasElement Or PRelu Pad Pow
RMSNormalization RNN RandomNormal RandomNormalLike RandomUniform RandomUniformLike Range Reciprocal ReduceL1
ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu
Reshape Resize ReverseSequence RotaryEmbedding Round STFT Scan Scatter ScatterElements ScatterND Selu SequenceAt
SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap Shape Shrink Sigmoid
Sign Sin Sinh Size Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split SplitToSequence
Sqrt Squeeze Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Upsample Where Xor
""".split()

# Inputs whose values decide shapes: they have to be known when the model is compiled.
CONSTANTS = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "Compress": (1,),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Dropout": (1, 2),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "Loop": (0, 1),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
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
    "STFT": (1, 3),
    "SequenceAt": (1,),
    "SequenceErase": (1,),
    "SequenceInsert": (2,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}

# Cases whose gradients are not compared, and why.
NO_GRADIENT = {
    r"attention_.*(nan_robustness|fullymasked|negative_offset|gqa_rank4_mask).*_expanded":
        "rows of -inf before a softmax, whose derivative is NaN",
}

# Cases by name, and why they are not run.
SKIPPED = {
    "scan_sum": "the form of opset 8, which onnx's converter takes for that of opset 9",
}

# Cases whose outputs are compared with another absolute tolerance.
TOLERANCES = {
    r"dft_inverse(_opset19)?": 1e-6,  # numpy has 2e-7 for zeros
}


def drawn_bernoulli(inputs, outputs):
    """What is wrong with draws of 0 and 1 by their probabilities."""
    draws, chances = outputs[0], np.broadcast_to(inputs[0], outputs[0].shape)
    if not np.isin(draws, (0, 1)).all():
        return "draws others than 0 and 1"
    if draws[chances <= 0].any() or not draws[chances >= 1].all():
        return "draws what has no chance"
    return None


def drawn_dropout(inputs, outputs):
    """What is wrong with a dropout, of which the ratio is the second input and the mask the second output."""
    ratio = float(inputs[1]) if len(inputs) > 1 and np.size(inputs[1]) else 0.5
    given, kept = inputs[0], outputs[0] != 0
    if len(outputs) > 1 and not np.array_equal(outputs[1], kept | ((given == 0) & outputs[1])):
        return "has a mask that does not tell what is kept"
    if not np.allclose(outputs[0][kept], given[kept] / (1 - ratio)):
        return "keeps values that are not the input's over 1 - ratio"
    if ratio == 0 and not kept[given != 0].all() or ratio > 0 and kept.all():
        return f"keeps {kept.sum()} of {kept.size} with ratio {ratio}"
    return None


# Cases with random numbers, which are the implementation's own.
DRAWN = {r"bernoulli.*": drawn_bernoulli, r"training_dropout.*": drawn_dropout}
