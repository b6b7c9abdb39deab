"""SpecAugment, which transformers' speech models have on by default, is drawn anew in each micro-batch: as transformers draws it by
NumPy, and with the losses that PyTorch has of the program's masks.

usage: spans.py SOURCE BUILD
"""
from exports import check, path, told
from replay import draws_of, replayed, trained
import numpy as np
import scipy.stats
import torch
from transformers import HubertConfig, HubertForSequenceClassification
from transformers.models.hubert.modeling_hubert import _compute_mask_indices
import dsopt
from dsopt._weights import read_weights
from dsopt._export._spans import is_span_mask, span_mask

check(is_span_mask(_compute_mask_indices), "transformers draws its masks in another way than is known: compare span_mask with it")


def features(mask):
    """What a row of a mask is told by: how many places are masked, the first one, how many spans there seem to be."""
    rows = mask.astype(int)
    begins = (np.diff(rows, axis=1, prepend=0) == 1).sum(1)
    return {"masked places": rows.sum(1), "first place": np.where(rows.any(1), rows.argmax(1), -1), "runs": begins, "last place": rows[:, -1]}


def alike(a, b):
    """The p-value of two samples of integers being of one distribution."""
    values = np.union1d(a, b)
    table = np.array([[(one == value).sum() for value in values] for one in (a, b)])
    rare = table.sum(0) < 20
    table = np.c_[table[:, ~rare], table[:, rare].sum(1)] if rare.any() else table
    table = table[:, table.sum(0) > 0]
    return scipy.stats.chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0


np.random.seed(1)
torch.manual_seed(1)
lengths = torch.tensor([20, 13, 5, 2])
for length, prob, span, least, padded in ((20, 0.3, 4, 0, False), (20, 0.05, 10, 2, False), (20, 0.3, 4, 0, True), (20, 0.13, 3, 1, True), (7, 0.9, 3, 0, False)):
    shape = (4, length)
    attention = (torch.arange(length) < lengths[:, None]).long() if padded else None
    given = {"attention_mask": attention, "min_masks": least}
    masks = [np.stack([draw() for _ in range(2500)]) for draw in (
        lambda: _compute_mask_indices(shape, prob, span, **given), lambda: span_mask(shape, prob, span, **given).numpy())]
    for row in range(4):
        theirs, mine = (features(one[:, row]) for one in masks)
        for name, values in theirs.items():
            p = alike(values, mine[name])
            check(p > 1e-6, f"length {length}, p {prob}, spans of {span}, row {row}: {name}: p {p}")
    # Rows share the rounding of their number of spans.
    counts = [one.sum(2) for one in masks]
    p = alike(*(one[:, 0] * 100 + one[:, 1] for one in counts))
    check(p > 1e-6, f"length {length}: rows together: p {p}")
print("distribution: as transformers'")

sizes = dict(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24, conv_dim=(8, 8), conv_stride=(4, 4),
             conv_kernel=(8, 4), num_feat_extract_layers=2, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, classifier_proj_size=8,
             num_labels=4, hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0, final_dropout=0.0,
             mask_time_prob=0.3, mask_time_length=4, mask_feature_prob=0.3, mask_feature_length=2)
model = HubertForSequenceClassification(HubertConfig(layerdrop=0.0, **sizes)).train()
steps = 6
data = {"input_values": torch.randn(1, 2, 256).expand(steps, -1, -1), "labels": torch.randint(0, 4, (1, 2)).expand(steps, -1)}
report, lines = told(lambda: dsopt.export(model, {name: value[0] for name, value in data.items()}, path("spans.onnx")))
check(report.checked.startswith("compared") and not [one for one in lines if "forward changes" in one], (report, lines))
losses = dsopt.train(path("spans.onnx"), data, lr=0.0).losses
want = replayed(model, data, steps, count=draws_of(path("spans.onnx")))
check(len(set(losses)) == steps and np.allclose(losses, want, rtol=1e-5), f"{losses}, PyTorch's of the same draws {want}")

# LayerDrop, too: layers that no micro-batch of a step reaches are not updated, as in PyTorch.
model = HubertForSequenceClassification(HubertConfig(layerdrop=0.5, **{**sizes, "num_hidden_layers": 3})).train()
data = {"input_values": torch.randn(2 * steps, 2, 256), "labels": torch.randint(0, 4, (2 * steps, 2))}
report, lines = told(lambda: dsopt.export(model, {name: value[0] for name, value in data.items()}, path("dropping.onnx")))
check(report.checked.startswith("compared") and not lines, (report, lines))
got = dsopt.train(path("dropping.onnx"), data, lr=1e-2, weight_decay=0.1, dp=2, micro_batches=1, save_weights=path("dropping.safetensors"))
weights = read_weights(path("dropping.safetensors"))
start = {name: one.detach().clone() for name, one in model.named_parameters()}
want, idle = trained(model, data, steps, 2, torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1))
check(any("encoder.layers" in name for name in idle), f"every step reaches all layers: {idle}")
check(np.allclose(got.losses, want, rtol=1e-5), f"{got.losses}, PyTorch's of the same draws {want}")
for name, one in model.named_parameters():
    moved = float((one - start[name]).detach().abs().max())
    off = float(np.abs(weights[name] - one.detach().numpy()).max()) if name in weights else 0.0
    check(off <= 2e-3 * moved + 1e-6, f"'{name}' is off by {off}, it moved by {moved}")
print("passed")
