"""deepspeed_config.py DSOPT MODELS FOLDER: what dsopt makes of DeepSpeed configurations.

Ten say what DeepSpeed's own documentation shows; thirty are misspelt, misplaced or contradict
themselves. Each is compiled to stage graph: its options are in the module."""
import json
import re
import subprocess
import sys

dsopt, models, folder = sys.argv[1:4]
mlp, dynamic = f"{models}/mlp/model.onnx", f"{models}/gpt2-tiny-opset23-dynamic/model.onnx"
rows, count = [], 0


def adam(**params):
    return {"type": "Adam", "params": params}


def zero(**keys):
    return {"zero_optimization": keys}


def check(name, config, expected, options=None, args=(), model=mlp):
    """`expected`: None where it is obeyed without a warning, else what the message says, a warning
    where options are given as well. `options`: what the module then says; None where it says
    nothing, and the default holds."""
    global count
    count += 1
    path = f"{folder}/{count}.json"
    with open(path, "w") as file:
        file.write(config if isinstance(config, str) else json.dumps(config, indent=1))
    run = subprocess.run([dsopt, model, f"-config={path}", "-emit=graph", *args], capture_output=True, text=True)
    got = re.sub(r"dsopt: \S+ gradient_clipping is not given.*\n", "", run.stderr.replace(path, "FILE"))
    # The module's attributes stand in front of its first operation, over as many lines as they need.
    header = re.sub(r"\s+", " ", run.stdout.split("graph.parameter", 1)[0])
    problems = []
    if (run.returncode != 0) != (options is None):
        problems.append(f"exit status {run.returncode}")
    for needle in [expected] if isinstance(expected, str) else expected or []:
        if needle not in got:
            problems.append(f"no '{needle}'")
    if expected is None and got:
        problems.append("unexpected message")
    if options is None and got.count("\n") > 3:
        problems.append("more than one message")
    for key, value in (options or {}).items():
        if value is None:
            problems += [f"{key} is said"] * (f" {key} = " in header)
            continue
        text = f'"{value}"' if isinstance(value, str) else f"{value} : i64"
        if not re.search(rf'[{{ ]"?{re.escape(key)}"? = {re.escape(text)}', header):
            problems.append(f"no {key} = {text}")
    if problems:
        rows.append(name)
        print(f"{name}: {', '.join(problems)}\n  {got}  {header[:900]}")


# Ten of DeepSpeed's documentation.
check("getting started", {"train_batch_size": 8, "gradient_accumulation_steps": 1,
                          "optimizer": adam(lr=0.00015), "fp16": {"enabled": True}, "zero_optimization": True},
      None, {"precision": "fp16", "lr": "0.00015", "zero": 1})
check("a dynamic loss scale", {"fp16": {"enabled": True, "loss_scale": 0, "initial_scale_power": 12, "loss_scale_window": 200,
                                        "hysteresis": 3, "consecutive_hysteresis": False, "min_loss_scale": 2}}, None,
      {"precision": "fp16", "loss-scale": "0", "initial-scale-power": "12", "loss-scale-window": "200",
       "loss-scale-hysteresis": "3", "min-loss-scale": "2"})
check("a fixed loss scale", {"fp16": {"enabled": True, "loss_scale": 128, "hysteresis": 2}},
      "fp16.hysteresis (5:3): has no effect: the loss scale is fixed", {"precision": "fp16", "loss-scale": "128"})
check("fp16 switched off", {"fp16": {"enabled": False, "loss_scale_window": 200}},
      "fp16.loss_scale_window (4:3): has no effect: fp16.enabled is false", {"precision": None})
check("hysteresis at each step", {"fp16": {"enabled": True, "consecutive_hysteresis": True}},
      "fp16.consecutive_hysteresis: is not available yet")
check("gradients in fp16", {"fp16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp16"}}, None,
      {"precision": "fp16", "gradient_type": "param"})
check("lion", {"optimizer": {"type": "Lion", "params": {"weight_decay": 0.1}}}, None,
      {"optimizer": "lion", "lr": "0.001", "betas": "0.9,0.999", "weight-decay": "0.1"})
check("adagrad", {"optimizer": {"type": "Adagrad", "params": {"lr": 0.02, "eps": 1e-9}}}, None,
      {"optimizer": "adagrad", "lr": "0.02", "eps": "1e-09"})
check("lamb", {"optimizer": {"type": "Lamb", "params": {"lr": 0.002, "betas": [0.8, 0.9], "max_coeff": 10, "min_coeff": 0.01}}}, None,
      {"optimizer": "lamb", "lr": "0.002", "betas": "0.8,0.9"})
check("1-bit adam", {"optimizer": {"type": "OneBitAdam", "params": {"lr": 0.002, "freeze_step": 7, "betas": [0.8, 0.9]}}}, None,
      {"optimizer": "onebit-adam", "freeze_step": 7, "lr": "0.002", "betas": "0.8,0.9"})
check("1-bit adam as DeepSpeed has it", {"optimizer": {"type": "OneBitAdam", "params": {"comm_backend_name": "nccl"}}},
      "optimizer.params.comm_backend_name", {"optimizer": "onebit-adam", "freeze_step": 100000})
check("0/1 adam", {"optimizer": {"type": "ZeroOneAdam", "params": {"lr": 0.002, "var_freeze_step": 9, "var_update_scaler": 3, "local_step_scaler": 5,
                                                                  "local_step_clipper": 8}}}, None,
      {"optimizer": "zero-one-adam", "freeze_step": 9, "var_update_scaler": 3, "local_step_scaler": 5, "local_step_clipper": 8, "lr": "0.002"})
check("0/1 adam as DeepSpeed has it", {"optimizer": {"type": "ZeroOneAdam", "params": {"bias_correction": False}}},
      "optimizer.params.bias_correction (5:4): has no effect: 0/1 Adam corrects its bias, by how often its variance was updated",
      {"optimizer": "zero-one-adam", "freeze_step": 100000, "var_update_scaler": 16, "local_step_scaler": 32678, "local_step_clipper": 16})
check("1-bit lamb", {"optimizer": {"type": "OneBitLamb", "params": {"lr": 0.002, "freeze_step": 7, "weight_decay": 0.01, "max_coeff": 0.3, "min_coeff": 0.02,
                                                                    "coeff_beta": 0.8, "factor_max": 3, "factor_min": 0.6, "factor_threshold": 0.2}}}, None,
      {"optimizer": "onebit-lamb", "freeze_step": 7, "lr": "0.002", "weight-decay": "0.01", "max-coeff": "0.3", "min-coeff": "0.02", "coeff-beta": "0.8",
       "factor-max": "3", "factor-min": "0.6", "factor-threshold": "0.2"})
check("1-bit lamb as DeepSpeed has it", {"optimizer": {"type": "OneBitLamb", "params": {"bias_correction": False}}},
      "optimizer.params.bias_correction (5:4): has no effect: 1-bit LAMB corrects no bias", {"optimizer": "onebit-lamb", "freeze_step": 100000})
check("factors of lamb", {"optimizer": {"type": "Lamb", "params": {"factor_max": 3}}}, "is no parameter of optimizer.type")
check("muon", {"optimizer": {"type": "Muon", "params": {"lr": 0.002, "adam_lr": 0.001, "momentum": 0.9, "weight_decay": 0.1}}}, None,
      {"optimizer": "muon", "lr": "0.002", "adam-lr": "0.001", "momentum": "0.9", "weight-decay": "0.1", "betas": "0.9,0.95", "eps": "1e-10"})
check("muon's defaults", {"optimizer": {"type": "Muon", "params": {"muon_lr": 0.01}}}, None,
      {"optimizer": "muon", "lr": "0.01", "adam-lr": "0.0003", "weight-decay": "0"})
check("muon by heads", {"optimizer": {"type": "Muon", "params": {"per_head_muon": True}}}, "optimizer.params.per_head_muon")
check("bounds of lamb", {"optimizer": {"type": "Lamb", "params": {"lr": 0.002, "max_coeff": 0.3}}},
      "optimizer.params.max_coeff")
check("betas of adagrad", {"optimizer": {"type": "Adagrad", "params": {"betas": [0.8, 0.9]}}},
      "is no parameter of optimizer.type")
check("gradients in fp16 of fp32", {"communication_data_type": "fp16"},
      "communication_data_type: fp16 needs fp16.enabled, or -precision=fp16")
check("cifar", {"train_batch_size": 8, "steps_per_print": 2000,
                "optimizer": adam(lr=0.001, betas=[0.8, 0.999], eps=1e-8, weight_decay=3e-7),
                "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 0.001,
                                                             "warmup_num_steps": 1000}},
                "wall_clock_breakdown": False}, None,
      {"optimizer": "adamw", "micro_batches": 1, "lr": "0.001", "betas": "0.8,0.999", "weight-decay": "3e-07",
       "lr-schedule": "warmup", "warmup-steps": "1000", "lr-params": "warmup_min_lr=0", "log-every": "2000",
       "clip": 1})
check("bert pretraining", {"train_batch_size": 4096, "train_micro_batch_size_per_gpu": 4,
                           "optimizer": adam(lr=2e-4, max_grad_norm=1.0, weight_decay=0.0)},
      "optimizer.params.max_grad_norm: DeepSpeed refuses it as well: gradient_clipping is the key")
check("zero tutorial, stage 1", zero(stage=1, reduce_bucket_size=5e8), None, {"zero": 1, "reduce_bucket_size": 500000000})
check("zero tutorial, stage 3",
      zero(stage=3, contiguous_gradients=True, stage3_max_live_parameters=1e9, stage3_max_reuse_distance=1e9,
           stage3_prefetch_bucket_size=1e7, stage3_param_persistence_threshold=1e5, reduce_bucket_size=1e7,
           sub_group_size=1e9),
      "zero_optimization.sub_group_size (10:3): has no effect: nothing lies on disk",
      {"zero": 3, "max_live_parameters": 1000000000, "max_reuse_distance": 1000000000, "prefetch_bucket_size": 10000000,
       "param_persistence_threshold": 100000, "reduce_bucket_size": 10000000}, ["-dp=2"])
check("gathers at stage 2", zero(stage=2, allgather_bucket_size=2e8, reduce_bucket_size=2e8), None,
      {"gather_bucket_size": 200000000, "reduce_bucket_size": 200000000}, ["-dp=2"])
check("gathers at stage 0", zero(stage=0, allgather_bucket_size=2e8),
      "zero_optimization.allgather_bucket_size (4:3): has no effect: nothing is gathered under stage 0", {"zero": 0}, ["-dp=2"])
check("gathers of nothing", zero(stage=1, allgather_bucket_size=0),
      "zero_optimization.allgather_bucket_size: expected a whole number of 1 or more, got 0")
check("zero-offload tutorial", zero(stage=2, offload_optimizer={"device": "cpu"}, contiguous_gradients=True,
                                    overlap_comm=True),
      None, {"zero": 2, "offload_optimizer": "cpu", "offload_ratio": None}, ["-dp=2"])
check("a part of the optimizer", zero(stage=3, offload_optimizer={"device": "cpu", "ratio": 0.75}), None,
      {"offload_optimizer": "cpu", "offload_ratio": "0.25"}, ["-dp=2"])
check("the old form of offload", zero(stage=2, cpu_offload=True), None, {"offload_optimizer": "cpu"}, ["-dp=2"])
check("parameters too", zero(stage=3, offload_param={"device": "cpu"}, offload_optimizer={"device": "cpu"}), None,
      {"offload_params": "cpu", "offload_optimizer": "cpu"}, ["-dp=2"])
check("offload to disk", {**zero(stage=3, sub_group_size=1e9, offload_optimizer={"device": "nvme", "nvme_path": "/local_nvme"},
                                 offload_param={"device": "nvme", "nvme_path": "/local_nvme"}),
                          "aio": {"block_size": 262144, "queue_depth": 32, "single_submit": False, "overlap_events": True}}, None,
      {"offload_optimizer": "nvme", "offload_params": "nvme", "sub_group_size": 1000000000, "nvme-path": "/local_nvme",
       "aio": "block_size=262144,queue_depth=32"}, ["-dp=2"])
check("two disks", zero(stage=3, offload_optimizer={"device": "nvme", "nvme_path": "/a"}, offload_param={"device": "nvme", "nvme_path": "/b"}),
      "contradicts zero_optimization.offload_optimizer.nvme_path")
check("disk's keys without a disk", {**zero(stage=3, sub_group_size=1e9, offload_optimizer={"device": "cpu", "nvme_path": "/a"}),
                                     "aio": {"block_size": 262144}}, "nothing lies on disk",
      {"offload_optimizer": "cpu"}, ["-dp=2"])
check("a ratio of nothing", zero(stage=3, offload_optimizer={"ratio": 0.75}), "no optimizer is offloaded", {}, ["-dp=2"])
check("recomputation", {"pipeline": {"stages": 2, "activation_checkpoint_interval": 1}}, None, {"recompute": "full", "pp": 2})
check("activations on the host", {"activation_checkpointing": {"cpu_checkpointing": True}}, None, {"offload_activations": "cpu"})
check("pipeline tutorial", {"train_batch_size": 256, "train_micro_batch_size_per_gpu": 8,
                            "optimizer": adam(lr=0.001, betas=[0.9, 0.999], eps=1e-8), "steps_per_print": 10,
                            "pipeline": {"stages": 2}}, None,
      {"pp": 2, "dp": 4, "micro_batches": 8, "weight-decay": "0"}, ["-dp=4"])
check("one-cycle tutorial",
      {"scheduler": {"type": "OneCycle", "params": {
          "cycle_first_step_size": 1000, "cycle_first_stair_count": 500, "cycle_second_step_size": 1000,
          "cycle_second_stair_count": 500, "decay_step_size": 1000, "cycle_min_lr": 0.0001, "cycle_max_lr": 0.0010,
          "decay_lr_rate": 0.001, "cycle_min_mom": 0.85, "cycle_max_mom": 0.99, "decay_mom_rate": 0.0}}}, None,
      {"lr-schedule": "onecycle", "lr": "0.001",
       "lr-params": "cycle_min_lr=0.0001,cycle_first_step_size=1000,cycle_second_step_size=1000,"
                    "cycle_first_stair_count=500,cycle_second_stair_count=500,decay_step_size=1000,"
                    "decay_lr_rate=0.001,cycle_min_mom=0.85,cycle_max_mom=0.99,decay_mom_rate=0"})
check("range test tutorial",
      {"scheduler": {"type": "LRRangeTest", "params": {
          "lr_range_test_min_lr": 0.0001, "lr_range_test_step_size": 200, "lr_range_test_step_rate": 5,
          "lr_range_test_staircase": False}}}, None, {"lr-schedule": "range-test", "lr": "0.0001"})
check("everything auto", {"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
                          "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
                          "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto",
                                                                    "weight_decay": "auto"}},
                          "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto",
                                                                       "warmup_max_lr": "auto",
                                                                       "warmup_num_steps": "auto"}},
                          "bf16": {"enabled": "auto"},
                          **zero(stage=2, overlap_comm=True, reduce_bucket_size="auto")}, None,
      {"zero": 2, "micro_batches": 2, "lr": "0.01", "warmup-steps": "20", "grad-clip": "0", "clip": 0},
      ["-dp=2", "-micro-batches=2", "-lr=0.01", "-warmup-steps=20", "-grad-clip=0"])

# Ten that are misspelt.
check("zero_optimisation", {"zero_optimisation": {"stage": 3}},
      "FILE:2:2: zero_optimisation: the top level has no such key; did you mean 'zero_optimization'?")
check("stages", zero(stages=3), "'zero_optimization' has no such key; it belongs into 'pipeline'")
check("overlap", zero(stage=2, overlap_com=True), "did you mean 'overlap_comm'?")
check("micro batch", {"train_micro_batch_size_per_device": 8}, "did you mean 'train_micro_batch_size_per_gpu'?")
check("partitioned", {"activation_checkpointing": {"partitioned_activations": True}},
      "did you mean 'partition_activations'?")
check("grad clip", {"gradient_cliping": 1.0}, "did you mean 'gradient_clipping'?")
check("optimizer", {"optimizer": {"type": "AdamWW"}}, "optimizer.type: expected one of Adam, AdamW, SGD, Lion, Adagrad, Lamb, Muon, OneBitAdam, OneBitLamb, ZeroOneAdam, got 'AdamWW'")
check("warm-up", {"scheduler": {"type": "WarmupLR", "params": {"warmup_steps": 10}}},
      "did you mean 'warmup_num_steps'?")
check("autotuning", {"autotuning": {"enabeld": True}}, "'autotuning' has no such key; did you mean 'enabled'?")
check("twice", '{"steps_per_print": 1,\n "zero_optimization": {"stage": 1},\n "steps_per_print": 2}',
      "FILE:3:2: the key 'steps_per_print' is there twice, first at 1:2")

# Ten that are misplaced, or no such value.
check("stage above", {"stage": 3}, "FILE:2:2: stage: the top level has no such key; it belongs into 'zero_optimization'")
check("rate beside type", {"optimizer": {"type": "Adam", "lr": 0.1}}, "it belongs into 'optimizer.params'")
check("clipping in zero", zero(stage=1, gradient_clipping=1.0), "it belongs into the top level")
check("warm-up in optimizer", {"optimizer": adam(warmup_num_steps=5)}, "it belongs into 'scheduler.params'")
check("bf16 flag", {"bf16": True}, "bf16: expected a block {...}, got true")
check("negative rate", {"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": -1e-3}}},
      "scheduler.params.warmup_max_lr: expected a number of 0 or more, got -0.001")
check("stage 4", zero(stage=4), "zero_optimization.stage: expected one of 0, 1, 2, 3, got 4")
check("text for a number", {"train_batch_size": "32"}, "expected a whole number of 1 or more, got '32'")
check("no JSON", '{"train_batch_size": 8,\n "steps_per_print" 1}', "FILE:2:20: no JSON: ")
check("momentum of Adam", {"optimizer": adam(lr=0.1, momentum=0.9)},
      "optimizer.params.momentum: is no parameter of optimizer.type (3:3) Adam; SGD, Muon take it")

# Ten that contradict themselves, the command line or the model, or have no effect.
check("batch", {"train_batch_size": 32, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 4},
      "train_batch_size: 32 contradicts train_micro_batch_size_per_gpu (3:2) 8 x gradient_accumulation_steps "
      "(4:2) 4 x 2 dp = 64", args=["-dp=2"])
check("remainder", {"train_batch_size": 30, "train_micro_batch_size_per_gpu": 8},
      "30 is no multiple of train_micro_batch_size_per_gpu (3:2) 8 x 1 dp = 8")
check("rows of the model", {"train_batch_size": 32},
      ["-micro-batch-size=32 does not match input 'labels', whose first dimension is 8",
       "note: -micro-batch-size=32 comes from FILE:2:2: train_batch_size"])
check("rows bound", {"train_batch_size": 12, "gradient_accumulation_steps": 2}, None,
      {"micro_batch_size": 3, "micro_batches": 2}, ["-dp=2", "-dim=s38=16", "-dim=s70=16"], dynamic)
check("two precisions", {"fp16": {"enabled": True}, "bf16": {"enabled": True}},
      "fp16.enabled: contradicts bf16.enabled (6:3): only one of them can be true")
check("offload below stage 3", zero(stage=2, offload_param={"device": "cpu"}),
      "parameters are offloaded under stage 3 only, zero_optimization.stage (3:3) is 2")
check("stage3 key at stage 1", zero(stage=1, stage3_max_live_parameters=10),
      "zero_optimization.stage3_max_live_parameters (4:3): has no effect: it is for stage 3, "
      "zero_optimization.stage (3:3) is 1", {"zero": 1})
check("rate of another schedule", {"scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 10}}},
      "is no parameter of scheduler.type (3:3) WarmupLR; WarmupDecayLR, WarmupCosineLR take it")
check("two rates", {"optimizer": adam(lr=0.1),
                    "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_max_lr": 0.2, "total_num_steps": 9,
                                                                      "warmup_num_steps": 3}}},
      "optimizer.params.lr (5:4): has no effect: scheduler.params.warmup_max_lr is the learning rate",
      {"lr": "0.2", "lr-decay-steps": "9"})
check("ZeRO++", zero(stage=3, zero_hpz_partition_size=2, zero_quantized_weights=True, zero_quantized_gradients=True), None,
      {"zero": 3, "node_size": 2, "secondary_params": "node", "gather_type": "int8", "reduce_type": "int4"}, ["-dp=4"])
check("ZeRO++ below stage 3", zero(stage=2, zero_hpz_partition_size=2),
      "zero_optimization.zero_hpz_partition_size (4:3): has no effect: it is for stage 3, ", {"zero": 2}, ["-dp=4"])
check("a partition that divides no ranks", zero(stage=3, zero_hpz_partition_size=3),
      "-node-size=3 does not divide the 4 data-parallel ranks", args=["-dp=4"])
check("sequence parallelism", {"sequence_parallel_size": 2}, None, {"sp": 2})
check("a mesh", {"mesh_param": [2, 2]}, "mesh_param: a mesh of ranks is given by -dp and -sp, or by sequence_parallel_size")
check("tensor parallelism", {"tensor_parallel": {"autotp_size": 2}}, None, {"tp": 2})
check("tensor parallelism in a block", {"tensor_parallel": {"tp": {"tp_size": 2}}}, None, {"tp": 2})
check("two sizes of one thing", {"tensor_parallel": {"autotp_size": 2, "tp": {"tp_size": 4}}},
      "tensor_parallel.tp.tp_size: 4 contradicts tensor_parallel.autotp_size (3:3) 2: both are -tp")
check("the command line wins", {"train_batch_size": 32, "fp16": {"enabled": True}, "gradient_accumulation_steps": 4,
                                "gradient_clipping": 0.5, **zero(stage=3), "optimizer": adam(lr=0.1)},
      "fp16.enabled (4:3): has no effect: -precision is given",
      {"zero": 1, "grad-clip": "2", "micro_batches": 2, "lr": "0.3"},
      ["-zero=1", "-grad-clip=2", "-micro-batches=2", "-micro-batch-size=8", "-lr=0.3", "-precision=fp32"])

print(f"{count} configurations, {len(rows)} wrong")
sys.exit(bool(rows))
