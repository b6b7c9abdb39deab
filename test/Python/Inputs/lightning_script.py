"""Trains a small transformer with Lightning's Trainer; test/Python/lightning.py changes two lines of it."""
import json
import os
import sys

import lightning
import torch

vocabulary, length, width = 29, 12, 32


class Model(lightning.LightningModule):
    def __init__(self, rate=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.embed = torch.nn.Embedding(vocabulary, width)
        self.place = torch.nn.Parameter(torch.randn(length, width) * 0.02)
        self.layer = torch.nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, ids):
        mask = torch.full((length, length), float("-inf")).triu(1)
        return self.head(self.layer(self.embed(ids) + self.place, src_mask=mask))

    def training_step(self, batch, batch_idx):
        loss = torch.nn.functional.cross_entropy(self(batch["ids"]).flatten(0, 1), batch["next"].flatten())
        self.log("train_loss", loss, prog_bar=True, sync_dist=True)
        return loss

    def validation_step(self, batch, batch_idx):
        logits = self(batch["ids"])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["next"].flatten())
        self.log_dict({"val_loss": loss, "val_accuracy": (logits.argmax(-1) == batch["next"]).float().mean()}, sync_dist=True)

    def configure_optimizers(self):
        rest = [one for one in self.parameters() if one.ndim < 2]
        groups = [{"params": [one for one in self.parameters() if one.ndim > 1], "weight_decay": 0.1},
                  {"params": rest, "weight_decay": 0.0, "lr": self.hparams.rate / 2}]
        optimizer = torch.optim.AdamW(groups, lr=self.hparams.rate, betas=(0.9, 0.95))
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step / 5, 1) * 0.98 ** step)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


class Keep(lightning.Callback):
    def __init__(self):
        self.kept = {"train": [], "validation": [], "rate": [], "epoch": []}

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.kept["train"].append(trainer.callback_metrics["train_loss"].item())
        self.kept["rate"].append(trainer.optimizers[0].param_groups[1]["lr"])

    def on_validation_epoch_end(self, trainer, module):
        if trainer.sanity_checking:
            return
        self.kept["validation"].append([trainer.callback_metrics[name].item() for name in ("val_loss", "val_accuracy")])
        self.kept["epoch"].append([trainer.current_epoch, trainer.global_step])


def row(at):
    ids = (torch.randint(0, vocabulary, (), generator=torch.Generator().manual_seed(at)) + 3 * torch.arange(length + 1)) % vocabulary
    return {"ids": ids[:-1], "next": ids[1:]}


lightning.seed_everything(3)
train, held_out = ([row(at) for at in rows] for rows in (range(160), range(160, 192)))
loaders = [torch.utils.data.DataLoader(train, batch_size=4, shuffle=True), torch.utils.data.DataLoader(held_out, batch_size=4)]
keep = Keep()
checkpoint = lightning.pytorch.callbacks.ModelCheckpoint(sys.argv[1], monitor="val_loss")
trainer = lightning.Trainer(
    accelerator="cpu", devices=2, strategy="ddp", max_steps=50, accumulate_grad_batches=2, gradient_clip_val=0.5,
    val_check_interval=10, logger=False, callbacks=[keep, checkpoint], enable_progress_bar=False, enable_model_summary=False)
model = Model()
trainer.fit(model, *loaders)
if trainer.is_global_zero:
    best = Model.load_from_checkpoint(checkpoint.best_model_path)
    norms = [[name, one.detach().norm().item()] for which in (model, best) for name, one in which.named_parameters()]
    with open(os.path.join(sys.argv[1], "kept.json"), "w") as file:
        json.dump({**keep.kept, "norms": norms, "world": trainer.world_size}, file)
