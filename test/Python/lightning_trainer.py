"""A script with Lightning's Trainer on two processes, and the same script with two lines changed on two ranks of dsopt:
equal losses, rates, validations, checkpoints and weights. Then what is refused, schedulers by value, early stopping,
batches of other forms, one rank.

usage: lightning_trainer.py SOURCE BUILD   with a Python that has torch and lightning
"""
import copy
import json
import logging
import os
import tempfile
import warnings

from start import source

import lightning
import torch
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR, ReduceLROnPlateau

import dsopt
import forks
from checks import check, fails
from sampled import sampled

folder = tempfile.mkdtemp()

# The script and its twin.
script = os.path.join(source, "test", "Python", "Inputs", "lightning_script.py")
lines = open(script).read().splitlines()
changed = [line.replace("import lightning", "import lightning, dsopt") if line == "import lightning" else
           line.replace('strategy="ddp"', "strategy=dsopt.lightning.Strategy(zero=2)") for line in lines]
check(sum(one != other for one, other in zip(lines, changed)) == 2, "the lines that change")
twin = os.path.join(folder, "twin.py")
with open(twin, "w") as file:
    file.write("\n".join(changed))
environment = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
kept = []
for which, ranks in ((script, 2), (twin, 1)):
    place = os.path.join(folder, f"kept{len(kept)}")
    said, status = forks.run(which, place, ranks=ranks, environment=environment, folder=folder)
    check(status == 0, f"{which}: {said[-4000:]}")
    kept.append(json.load(open(os.path.join(place, "kept.json"))))
want, got = kept
check(len(want["train"]) == 100 and want["epoch"] == got["epoch"] and want["world"] == got["world"] == 2, f"{want}, {got}")
check(want["rate"] == got["rate"] and want["rate"][-1] != want["rate"][20], "rates")
for name, most in (("train", 1e-4), ("validation", 1e-4), ("norms", 1e-3)):
    pairs = [(one, other) for one, other in zip(want[name], got[name])]
    check(len(want[name]) == len(got[name]), f"{name}: {want[name]}, {got[name]}")
    flat = [(a, b) for one, other in pairs for a, b in (zip(one, other) if isinstance(one, list) else [(one, other)])]
    check(all(a == b for a, b in flat if isinstance(a, str)), f"{name}: {flat}")
    worst = max(abs(a - b) for a, b in flat if not isinstance(a, str))
    check(worst < most, f"{name} differs by {worst}: {want[name]} and {got[name]}")
    print(f"{name}: {len(flat)} numbers differ by {worst:.1e} at most")
print("twins", flush=True)

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Net(lightning.LightningModule):
    def __init__(self, optimizers=None, norm=torch.nn.LayerNorm):
        super().__init__()
        self.first, self.norm, self.second = torch.nn.Linear(6, 16), norm(16), torch.nn.Linear(16, 3)
        self.optimizers_of = optimizers or (lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

    def forward(self, x):
        return self.second(torch.tanh(self.norm(self.first(x))))

    def training_step(self, batch, batch_idx):
        x, (y, scale) = batch
        loss = torch.nn.functional.cross_entropy(self(x), y) * scale.mean()
        self.log("loss", loss.detach(), on_step=True, on_epoch=True)
        return {"loss": loss}

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", torch.nn.functional.cross_entropy(self(batch[0]), batch[1][0]))

    def configure_optimizers(self):
        return self.optimizers_of(self)


class Losses(lightning.Callback):
    def __init__(self):
        self.found = []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.found.append(outputs["loss"].item())

    def on_train_epoch_end(self, trainer, module):
        self.found.append(trainer.callback_metrics["loss_epoch"].item())

    def on_validation_end(self, trainer, module):
        self.found.append(trainer.callback_metrics["val_loss"].item())


torch.manual_seed(0)
rows = [(torch.randn(6), (at % 3, torch.tensor(1.5))) for at in range(48)]


def loader(count=48, **options):
    return torch.utils.data.DataLoader(rows[:count], batch_size=8, **options)


def trainer(strategy, *callbacks, **options):
    given = {"max_epochs": 2, "num_sanity_val_steps": 0, "logger": False, "enable_checkpointing": False, "devices": 1,
             "enable_progress_bar": False, "enable_model_summary": False, **options}
    return lightning.Trainer(accelerator="cpu", strategy=strategy, callbacks=list(callbacks), **given)


def both(optimizers, *more, norm=torch.nn.BatchNorm1d, **options):
    """What Lightning and dsopt make of it: losses, and the model."""
    found = []
    for strategy in ("auto", dsopt.lightning.Strategy()):
        torch.manual_seed(5)
        model, losses = Net(optimizers, norm), Losses()
        one = trainer(strategy, losses, *copy.deepcopy(more), **options)
        one.fit(model, loader(), loader(24))
        found.append((losses.found, model, one))
    (want, theirs, before), (got, ours, after) = found
    check(len(want) == len(got) and max(abs(a - b) for a, b in zip(want, got)) < 1e-4, f"{want}, {got}")
    check((before.current_epoch, before.global_step) == (after.current_epoch, after.global_step), "where it ended")
    for (name, one), other in zip(theirs.state_dict().items(), ours.state_dict().values()):
        check(torch.allclose(one.float(), other.float(), rtol=1e-3, atol=1e-4) or name.endswith("num_batches_tracked"), f"{name} after training")
    return want, after


# One rank: batches of nested tuples, losses in a dict, running statistics, metrics of an epoch, a scheduler by epochs.
values, _ = both(lambda model: ([one := torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)], [LambdaLR(one, lambda at: 0.5 ** at)]))
check(len(values) == 16, values)


# A scheduler by value, and early stopping, see validations.
def by_value(model):
    one = torch.optim.Adam(model.parameters(), lr=0.05)
    return {"optimizer": one, "lr_scheduler": {"scheduler": ReduceLROnPlateau(one, patience=0, threshold=0.3, factor=0.2), "monitor": "val_loss"}}


stop = lightning.pytorch.callbacks.EarlyStopping("val_loss", min_delta=0.05, patience=1)
_, ended = both(by_value, stop, max_epochs=30, accumulate_grad_batches=3, norm=torch.nn.LayerNorm)
check(ended.current_epoch < 30 and ended.optimizers[0].param_groups[0]["lr"] < 0.05, "the scheduler by value, or early stopping")
print("one rank", flush=True)


# All that is refused, at once and before anything is done.
class Own(Net):
    def optimizer_step(self, *given):
        super().optimizer_step(*given)

    def on_after_backward(self):
        pass


wrong = trainer(dsopt.lightning.Strategy(lr=1, dp=3), devices=2, gradient_clip_val=1, gradient_clip_algorithm="value", accumulate_grad_batches=4)
fails(lambda: wrong.fit(Own(lambda model: torch.optim.RMSprop(model.parameters())), loader(44)), "optimizer_step() of Own", "on_after_backward() of Own",
      "the options dp, lr (devices=", "gradient_clip_algorithm='value' (it has norm)", "optimizer RMSprop is not available",
      "a smaller last batch: a rank has 22 rows, batches of 8 (drop_last=True", "a last step of fewer batches: a pass has 3, accumulate_grad_batches is 4")


# A run that goes on from Lightning's checkpoint has the bits of one that was never stopped: in the middle of an epoch and
# at its end, with a scheduler that has moved rates, and on two ranks in the order that a sampler draws for each epoch.
class Rates(lightning.Callback):
    def __init__(self):
        self.found = []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.found.append((trainer.global_step, outputs["loss"].item(), trainer.optimizers[0].param_groups[0]["lr"]))


def decays(model):
    one = torch.optim.AdamW(model.parameters(), lr=0.1)
    return [one], [{"scheduler": LambdaLR(one, lambda at: 0.9 ** at), "interval": "step"}]


def run_to(steps, place, every, ckpt_path=None, strategy=None, **options):
    torch.manual_seed(5)
    model, rates = Net(decays), Rates()
    saves = [lightning.pytorch.callbacks.ModelCheckpoint(place, filename="{step}", save_top_k=-1, every_n_train_steps=every)] if every else []
    one = trainer(strategy or dsopt.lightning.Strategy(zero=2), rates, *saves, max_steps=steps, max_epochs=-1, enable_checkpointing=bool(saves), **options)
    one.fit(model, loader(shuffle=options["devices"] > 1), loader(24), ckpt_path=ckpt_path)
    return model, rates.found, one


for options, steps, every in sampled((({"devices": 1}, 10, 3), ({"devices": 2, "accumulate_grad_batches": 3}, 4, 1), ({"devices": 2}, 7, 2)), 1):
    place = os.path.join(folder, f"goes-on-{options['devices']}-{every}-{len(options)}")
    whole, want, before = run_to(steps, place, 0, **options)
    run_to(steps - 1, place, every, **options)
    for file in [f"step={2 * every}.ckpt", f"step={every}.ckpt"]:  # of the first, an epoch's end and its middle
        rest, got, after = run_to(steps, place, 0, os.path.join(place, file), **options)
        step = int(file.split("=")[1].split(".")[0])
        check(got == want[-len(got):] and len(got) == (steps - step) * options.get("accumulate_grad_batches", 1), f"{options} {file}: {got}, expected {want}")
        check((before.current_epoch, before.global_step) == (after.current_epoch, after.global_step), f"{options} {file}: where it ended")
        for (name, one), other in zip(whole.state_dict().items(), rest.state_dict().values()):
            check(torch.equal(one, other), f"{options} {file}: {name} after a stop")
    print(f"goes on {options} from {sorted(os.listdir(place))}", flush=True)

# After fit, too, whatever was measured between; not with weights that the run did not leave. An epoch that a run has ended
# in is over for Lightning, and the next one is counted twice.
for options, steps in (*sampled((({"devices": 2, "accumulate_grad_batches": 3}, 2), ({"devices": 1}, 6)), 1), ({"devices": 1}, 8)):
    ended = os.path.join(folder, f"ended-{steps}.ckpt")
    part, _, one = run_to(steps, folder, 0, **options)
    one.validate(part, loader(24), verbose=False)
    one.save_checkpoint(ended)
    rest, got, after = run_to(steps + 3, folder, 0, ended, **options)
    window = options.get("accumulate_grad_batches", 1)
    if steps != 8:
        whole, want, _ = run_to(steps + 3, folder, 0, **options)
        equal = torch.equal if window == 1 else lambda x, y: torch.allclose(x, y, atol=1e-5)  # another order of a whole pass
        check(all(equal(x, y) for x, y in zip(whole.parameters(), rest.parameters())), f"{options} after fit: weights")
    if options["devices"] == 1:
        _, _, one = run_to(steps, folder, 0, strategy="auto", **options)
        one.save_checkpoint(ended + ".plain")
        _, want, before = run_to(steps + 3, folder, 0, ended + ".plain", strategy="auto", **options)
        check((before.current_epoch, before.global_step) == (after.current_epoch, after.global_step), f"{options}: where it ended after fit")
    want = want[-len(got):]
    check(len(got) == 3 * window and all(x[0] == y[0] and x[2] == y[2] for x, y in zip(want, got)), f"{options} after fit: {got}, expected {want}")
    pairs = [[sum(one[1] for one in found[at:at + window]) / window for found in (want, got)] for at in range(0, len(got), window)]
    check(all(abs(x - y) < 1e-5 for x, y in pairs), f"{options} after fit: {pairs}")
    print(f"goes on after fit of {steps} steps: {len(pairs)} losses differ by {max(abs(x - y) for x, y in pairs):.1e} at most", flush=True)
with torch.no_grad():
    part.first.weight.mul_(2)
one.save_checkpoint(ended)
fails(lambda: run_to(9, folder, 0, ended, devices=1), "ended-8.ckpt', in which is no state of the optimizer")
plain = os.path.join(folder, "plain.ckpt")
one = trainer("auto", max_steps=2)
one.fit(Net(decays), loader())
one.save_checkpoint(plain)
fails(lambda: run_to(4, folder, 0, plain, devices=1), "plain.ckpt', in which is no state of the optimizer")
check(Net.load_from_checkpoint(os.path.join(place, file)) is not None, "load_from_checkpoint")


def refused(*words, model=None, train=None, **options):
    fails(lambda: trainer(dsopt.lightning.Strategy(), **options).fit(model or Net(), loader() if train is None else train), *words)


def stepping(training_step):
    model = Net()
    model.training_step = training_step.__get__(model)
    return model


def logs_more(self, batch, batch_idx):
    out = Net.training_step(self, batch, batch_idx)
    self.log("twice", 2 * out["loss"])
    return out


refused("training_step gives self.log('twice')", model=stepping(logs_more))
refused("training_step computes with batch_idx", model=stepping(lambda self, batch, batch_idx: Net.training_step(self, batch, 0)["loss"] * batch_idx))
refused("reads trainer.global_step", model=stepping(lambda self, batch, batch_idx: Net.training_step(self, batch, 0)["loss"] * self.global_step))


def cycle(model):
    one = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return [one], [{"scheduler": OneCycleLR(one, 0.1, total_steps=12), "interval": "step"}]


refused("changed more of the optimizer than rates", model=Net(cycle))


def apart(model):
    one = torch.optim.SGD([{"params": model.first.parameters()}, {"params": model.second.parameters(), "lr": 0.2}], lr=0.1)
    return [one], [{"scheduler": LambdaLR(one, [lambda at: 1.0, lambda at: 0.5 ** at]), "interval": "step"}]


refused("parameter group 0 has the rate 0.1, expected 0.05", model=Net(apart))
class Unsized(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(rows[:40])


iter_only = torch.utils.data.DataLoader(Unsized(), batch_size=8)


class Warms(Net):
    share = 0.5

    def on_train_epoch_start(self):
        self.share = 1.0 / (1 + self.current_epoch)
        self.unread = self.current_epoch

    def training_step(self, batch, batch_idx):
        return torch.nn.functional.cross_entropy(self(batch[0]), batch[1][0]) * self.share


refused("'share' of the model was 1.0 in the first step and is 0.5 now", model=Warms())


class Thaws(lightning.Callback):
    def on_train_epoch_start(self, trainer, module):
        module.first.requires_grad_(trainer.current_epoch > 0)


fails(lambda: trainer(dsopt.lightning.Strategy(), Thaws()).fit(Net(), loader()), "other parameters have requires_grad than in the first step")
refused("a train loader that ranks cannot share", train=[next(iter(loader()))] * 6, devices=2)
refused("several train loaders with accumulate_grad_batches", train=[loader(), loader()], accumulate_grad_batches=2)
refused("the train loader ended after 1 batches of a step, which takes 4", train=iter_only, accumulate_grad_batches=4)
refused("precision='64-true'", precision="64-true")
print("passed")
