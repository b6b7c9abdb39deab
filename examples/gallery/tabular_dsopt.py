"""A network of embeddings and numbers learns a table's rule. Its loop is Lightning's."""
import dsopt
import lightning
import torch
from torch import nn

kinds = (7, 5, 12)  # values of each column of words; five columns of numbers are beside them


class Table(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(kind, 6) for kind in kinds)
        self.net = nn.Sequential(nn.Linear(5 + 6 * len(kinds), 64), nn.SiLU(), nn.LayerNorm(64), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, words, numbers):
        found = [embedding(words[:, at]) for at, embedding in enumerate(self.embeddings)]
        return self.net(torch.cat([numbers, *found], 1))[:, 0]

    def training_step(self, batch, batch_idx):
        loss = nn.functional.huber_loss(self(batch["words"], batch["numbers"]), batch["target"])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        off = self(batch["words"], batch["numbers"]) - batch["target"]
        self.log_dict({"mean absolute error": off.abs().mean(), "R2": 1 - off.square().mean() / batch["target"].var(correction=0)})

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=5e-3, weight_decay=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)]


class Print(lightning.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        print(f"step {trainer.global_step - 1} loss {outputs['loss']:.6f}")

    def on_validation_end(self, trainer, module):
        metrics = ", ".join(f"{name} {trainer.callback_metrics[name]:.3f}" for name in ("mean absolute error", "R2"))
        print(f"epoch {trainer.current_epoch} held out {metrics}")


def table(rows):
    words = torch.stack([torch.randint(kind, (rows,)) for kind in kinds], 1)
    numbers = torch.randn(rows, 5)
    target = numbers[:, 0] * (words[:, 0] - 3) / 2 + torch.sin(2 * numbers[:, 1]) + (words[:, 1] == 2) * numbers[:, 2] + words[:, 2] / 6
    return [{"words": a, "numbers": b, "target": c} for a, b, c in zip(words, numbers, target + 0.1 * torch.randn(rows))]


torch.manual_seed(0)
train, held_out = (torch.utils.data.DataLoader(table(rows), batch_size=size) for rows, size in ((32 * 40, 32), (500, 500)))
trainer = lightning.Trainer(
    accelerator="cpu", devices=1, strategy=dsopt.lightning.Strategy(pp=2), max_epochs=3, num_sanity_val_steps=0, logger=False,
    callbacks=[Print()], enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Table(), train, held_out)
