"""Trains a GPT-2 and a BERT with transformers.Trainer; test/Python/hf.py changes two lines of it."""
import json
import os
import sys

import torch
import transformers

vocabulary, length = 61, 16


def make(which):
    torch.manual_seed(1)
    if which == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=vocabulary, n_positions=length, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0,
            attn_pdrop=0, bos_token_id=0, eos_token_id=0, use_cache=False))
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=vocabulary, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=length, hidden_dropout_prob=0, attention_probs_dropout_prob=0, num_labels=3))


def row(which, at):
    random = torch.Generator().manual_seed(at)
    ids = torch.randint(1, vocabulary, (length,), generator=random)
    if which == "gpt2":  # rows with different numbers of labels that count
        labels = ids.clone()
        labels[:int(torch.randint(0, length // 2, (1,), generator=random))] = -100
        return {"input_ids": ids, "labels": labels}
    return {"input_ids": ids, "attention_mask": (torch.arange(length) < 8 + at % 8).long(), "labels": ids[0] % 3}


def measure(given):
    found = given.predictions.argmax(-1)
    return {"accuracy": float((found == given.label_ids).mean()), "rows": len(found), "labels": int(given.label_ids.sum())}


for which in ("gpt2", "bert"):
    output = os.path.join(sys.argv[1], which)
    data = [row(which, at) for at in range(160)]
    args = transformers.TrainingArguments(
        output_dir=output, use_cpu=True, per_device_train_batch_size=4, per_device_eval_batch_size=4,
        gradient_accumulation_steps=2, max_steps=50, learning_rate=3e-3, weight_decay=0.1, warmup_steps=5,
        lr_scheduler_type="cosine" if which == "gpt2" else "linear", adam_beta2=0.95, max_grad_norm=0.5,
        logging_steps=1, eval_strategy="steps", eval_steps=20, save_strategy="no", report_to="none",
        disable_tqdm=True, seed=7)
    held_out = data[128:] if which == "gpt2" else data[128:157]  # full batches alone, and not
    trainer = transformers.Trainer(model=make(which), args=args, train_dataset=data[:128], eval_dataset=held_out,
                                   compute_metrics=measure if which == "bert" else None)
    trainer.train()
    final = trainer.evaluate()
    predictions = trainer.predict(held_out[:15]).predictions.tolist()
    trainer.save_model(os.path.join(output, "model"))
    if int(os.environ.get("RANK", "0")) == 0:
        with open(os.path.join(output, "log.json"), "w") as file:
            json.dump({"history": trainer.state.log_history, "final": final, "predictions": predictions}, file)
