"""What people write who come from elsewhere, and what is wrong: each line is answered with what to write instead.

usage: command_lines.py DSOPT
"""
import os
import re
import subprocess
import sys
import tempfile

from runs import check, execute, model

dsopt = sys.argv[1]
path, data = model("mlp")
# The command line behind `dsopt` (M a model, D its data), and what the answer has.
WRONG = """
M -run -data=D --learning_rate 3e-4 | --learning_rate (of transformers): write -lr=3e-4
M -run -data=D --learning_rate=3e-4 | write -lr=3e-4
M --per_device_train_batch_size 8 | write -micro-batch-size=8
M --per_device_eval_batch_size 8 | an evaluation takes micro-batches of the size that training has
M --num_train_epochs 3 | write -epochs=3
M --max_steps 100 | write -steps=100
M --max_steps | write -steps=N
M --bf16 | write -precision=bf16
M --fp16 True | write -precision=fp16
M --gradient_accumulation_steps 4 | write -micro-batches=4
M --output_dir out | write -save=out; for checkpoints; -save-weights=FILE.safetensors
M --warmup_steps 10 | --warmup_steps: write -warmup-steps=10
M --warmup_ratio 0.1 | write -warmup-steps=N
M --lr_scheduler_type cosine | write -lr-schedule=cosine
M --max_grad_norm 1.0 | write -grad-clip=1.0
M --weight_decay=0.01 | write -weight-decay=0.01
M --adam_beta1 0.8 | write -betas=0.8,0.999
M --adam_epsilon 1e-6 | write -eps=1e-6
M --optim adamw_torch | dsopt help optimizer
M --save_steps 500 | write -save-every=500; with -save=DIR
M --eval_steps 500 | write -eval-every=500; with -eval-data=FILE
M --logging_steps 10 | write -log-every=10
M --resume_from_checkpoint out | write -resume=out
M --gradient_checkpointing | write -recompute=full
M --report_to wandb | write -log=FILE.jsonl
M --metrics accuracy | write -metric=accuracy
M --zero_stage 3 | (of DeepSpeed): write -zero=3
M --deepspeed ds.json | write -config=ds.json
M --num_gpus 4 | write -dp=4
M --hostfile hosts | torchrun --no-python, srun or mpirun
M --train_batch_size 32 | write -global-batch=32
M --nproc_per_node 4 | (of torchrun): write -dp=4
M --nproc-per-node=4 | write -dp=4
M --nnodes 2 | torchrun --no-python, srun or mpirun
M --max_epochs 3 | (of Lightning): write -epochs=3
M --devices 4 | write -dp=4
M --accelerator gpu | write -target=cpu|cuda
M --tensor-model-parallel-size 2 | (of Megatron): write -tp=2
M --pipeline-model-parallel-size 2 | (of Megatron): write -pp=2
M --train-iters 100 | write -steps=100
M --batch-size 8 | write -micro-batch-size=8
M --num_processes 2 | (of accelerate): write -dp=2
M --num_machines 2 | torchrun --no-python, srun or mpirun
M --mixed_precision bf16 | write -precision=bf16
M --offload_optimizer_device cpu | write -offload-optimizer=cpu
M --use-flash-attn | attention is found in the model
M --attn_implementation sdpa | attention is found in the model
M --compile | all that runs is compiled
M --torch_dtype bfloat16 | write -precision=bf16
M --wandb-project x | write -log=FILE.jsonl
M -run -data=D -steps=1 -steps=2 | -steps=1 and -steps=2 contradict each other
M -run -data=D -lr 1 --lr=0.5 | -lr=1 and -lr=0.5 contradict each other
M -run -data=D -step 5 | unknown option -step; did you mean -steps?
M -run -data=D -steps | option -steps needs a value: -steps=N
M -run -data=D -steps -quiet | option -steps needs a value: -steps=N
M -run -data=D -steps -5 | option -steps: expected a whole number of 1 or more, got '-5'
M -run -data=D -zero 4 | option -zero: expected one of 0|1|2|3, got '4'
M -run -data=D -lr fast | option -lr: expected a number, got 'fast'
M -run -data=D -optimizer adamv | did you mean adam?
M -run -data=D -ep 2 | option -ep is not available yet
M -run -data=D -quiet=yes | option -quiet takes no value, got 'yes'
M -plan -device-memory 1Mb | option -device-memory: expected a number of bytes such as 512M, 1.5GiB
M -plan -device-memory 1KB | more than the 1000 that -device-memory allows
M -run -data=D -micro-batch-size 9 | -micro-batch-size=9 does not match input
M -run -data=D -freeze * | the loss depends on no trained parameter
M -run -data absent.npz | absent.npz
M -run -data=D -o out | -run and -o exclude each other
M -run | -run needs -data=FILE.npz
train M | -run needs -data=FILE.npz
train M -data=D -eval | dsopt eval MODEL measures, dsopt train MODEL trains
eval M | -eval needs -data=FILE.npz
export M -resume=run | dsopt export needs -save-weights=FILE.safetensors or -save-onnx=FILE
predict M -data=D | -predict needs -save-outputs=FILE.npz
M train | what to do comes first: dsopt train MODEL.onnx
trian M | 'trian' is no file: did you mean dsopt train MODEL.onnx?
train nothere.onnx | cannot read 'nothere.onnx'
train D -steps 1 -data=D | is not an ONNX model: it does not start with an IR version: its name is that of data
M --machine_rank 1 | torchrun --no-python, srun or mpirun
M --main_process_port 29500 | torchrun --no-python, srun or mpirun
M --config_file accelerate.yaml | write -config=FILE.json
plan | no model is given
help learning_rate | write -lr=X
help zeor | did you mean -zero?
M -run -data=D --max_steps 10.5 | write -steps=N; expected a whole number of 1 or more, got '10.5'
M --torch_dtype=torch.float16 | write -precision=fp16
M --mixed_precision no | write -precision=fp32, which is the default
M -precision bf16-mixed | expected one of fp32|bf16|fp16, got 'bf16-mixed'; did you mean bf16?
M --optimizer AdamW | did you mean adamw?
M --optim adamw_torch_fused | write -optimizer=adamw, which is the default; dsopt help optimizer
M --optim galore | write -optimizer=
M --lr_scheduler_type polynomial | expected one of constant|linear|cosine
M --bf16 False | --bf16 (of transformers): leave it out
M --report_to none | leave it out
M --load_in_8bit | a quantized model is not trained
M --distributed-backend nccl | (of Megatron): ranks of one machine share memory
M --adam-beta1 0.9 | write -betas=0.9,0.999, which is the default; both of them
M --train_file data.txt | write -data=FILE
M --train_file data.txt | text, CSV and JSON go through a tokenizer or a loader first
M --train_file tokens.bin | write -data=tokens.bin; an .npz file or files of tokens
M -plan -device-memory 1 GB | write -device-memory=1GB as one word, got '1' and 'GB'
M -memory 8GB | write -device-memory=8GB; bytes of a rank's device
M --eval_strategy steps | write -eval-every=N; a number of steps
M --save_strategy epoch | write -save-every=N
M --max_seq_length 512 | write -dim=NAME=512
M --block_size 512 | write -dim=NAME=512
M --use_lora | export the model with its adapters
M --push_to_hub | write -save-weights=FILE.safetensors
M --tokenizer_name gpt2 | tokenizing comes before
M --remove_unused_columns False | only the model's inputs are read
M --use_cpu | write -target=cpu; the default
M --include localhost:0,1 | (of DeepSpeed): ranks of several machines
M --autotuning run | write -plan; it says what a layout needs
M --offload_param_device nvme | write -offload-params=nvme
M --zero3_init_flag true | a rank reads only the weights it owns
M --rdzv_id 100 | (of torchrun): ranks of several machines
M --dist-backend nccl | ranks of one machine share memory
M --world-size 4 | write -dp=4
M --multi_gpu | (of accelerate): write -dp=N
M --fsdp_sharding_strategy FULL_SHARD | FULL_SHARD is 3
M --fsdp_offload_params true | write -offload-params=cpu
M --dynamo_backend inductor | all that runs is compiled
M --tpu | write -target=cpu|cuda
M --trainer.max_epochs 3 | (of Lightning): write -epochs=3
M --optimizer.lr 0.1 | --optimizer.lr: write -lr=0.1
M --data.batch_size 32 | write -micro-batch-size=32
M --limit_train_batches 0.5 | write -steps=N; expected a whole number
M --fast_dev_run | write -steps=1
M --sync_batchnorm | statistics are those of a micro-batch
M --seed_everything 42 | write -seed=42
M --profiler simple | write -breakdown
M --hidden-size 1024 | change it in PyTorch and export again
M --train-samples 1000 | (of Megatron): write -steps=N; samples over
M --recompute-granularity selective | write -recompute=auto
M --overlap-grad-reduce | reductions trail behind
M --fp8-format hybrid | write -precision=bf16; there is no fp8
M --no-load-optim | write -weights=FILE.safetensors
M --lr-warmup-fraction .01 | write -warmup-steps=N
M --workers 4 | data are read where they lie
M --dry-run | write -plan
fit M | 'fit' is no file: did you mean dsopt train MODEL.onnx?
validate M | did you mean dsopt eval MODEL.onnx?
"""
# The same of a trained program.
WRONG_OF_PROGRAM = """
-data=D --num_train_epochs 3 | write -epochs=3
-data=D -zero 3 | is compiled in; use: dsopt M -o prog --dp=2 -lr=0.5 -zero=3
-data=D -steps 1 -steps 2 | contradict each other
D | unexpected argument
"""


def words_of(line):
    return [{"M": path, "D": data}.get(word, word).replace("=D", "=" + data) for word in line.split()]


def refused(command, line, answer):
    done = subprocess.run([*command, *words_of(line)], capture_output=True, text=True, timeout=60)
    text = done.stdout + done.stderr
    check(done.returncode == 1, f"{line}: status {done.returncode}, expected 1\n{text}")
    messages = [one for one in text.splitlines() if "error: " in one]
    check(len(messages) == 1, f"{line}: {len(messages)} messages, expected one\n{text}")
    check(answer in messages[0], f"{line}: expected '{answer}', got\n{text}")
    check(not re.search(r"'\w+\.\w+' op|mlir|\.cpp|Assert|Stack dump", text.replace(path, "")), f"{line}: internal names\n{text}")


def answered(line, *answers):
    text = execute([dsopt, *words_of(line)]).stdout
    for answer in answers:
        check(answer in text, f"{line}: expected '{answer}', got\n{text}")
    return text


def lines(table):
    return [[part.strip() for part in line.rsplit(" | ", 1)] for line in table.strip().splitlines()]


for line, answer in lines(WRONG):
    refused([dsopt], line, answer)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)  # `-freeze *` is no glob of a shell here, and what is written goes
    answered("M -o prog -zero 1 --dp 2 -lr 0.5", "wrote prog (", " MB): ", ", compiled with -dp=2 -zero=1;",
                    "without other options it runs with -lr=0.5\n")
    for line, answer in lines(WRONG_OF_PROGRAM):
        refused(["./prog"], line, answer.replace("M", path))
    check(answered("M -o prog -quiet") == "", "-quiet says something")
    # What is said to type is in quotes where a shell needs them.
    os.mkdir("a b")
    said = execute([dsopt, path, "-o", "a b/it's mine"]).stdout
    hint = re.search(r"; (.*) -data=FILE runs it", said)[1]
    check(subprocess.run(f"{hint} -help", shell=True, capture_output=True).returncode == 0, f"cannot be typed: {said}")
    done = subprocess.run(["a b/it's mine", f"-data={data}", "-zero=1"], capture_output=True, text=True)
    again = done.stderr.split("use: dsopt")[1].strip()
    check(subprocess.run(f"{dsopt} {again}", shell=True, capture_output=True).returncode == 0, f"cannot be typed: {done.stderr}")

    # Words and options as two words do what the options do.
    plan = answered("M -plan=text -zero=1 -dp=2")
    check(answered("plan M --zero 1 -dp 2") == plan and answered("M -zero 1 -dp=2 -plan text") == plan, "dsopt plan is no -plan")
    check(answered("-plan M -zero 1 -dp 2") == plan, "-plan took the model")
    answered("plan M -plan=json", '"ranks"')
    done = subprocess.run([dsopt, path, "-plan", "-device-memory", "1 GB"], capture_output=True, text=True)
    check(done.returncode == 1 and "write -device-memory=1GB without a space, got '1 GB'" in done.stderr, f"a size with a space: {done.stderr}")
    def losses(text):
        return re.findall(r"loss ([\d.]+)", text)
    trained = execute([dsopt, "train", path, "-data", data, "-steps", "2", "-log", "run.jsonl", "-save", "run", "-save-weights", "a"])
    check(len(losses(trained.stdout + trained.stderr)) >= 1, f"dsopt train says {trained.stdout}{trained.stderr}")
    execute([dsopt, "export", path, "-resume=run", "-data", data, "-save-weights", "b", "-quiet"])
    check(open("a", "rb").read() == open("b", "rb").read(), "exported weights differ from those of the run")
    execute([dsopt, "eval", path, "-data", data, "-resume", "run"])
    os.symlink(path, "train")
    check("zero" in answered("./train -plan -zero=1 -dp=2"), "a file of a word's name")
    done = execute([dsopt, "train", path, "-data", data, "-steps=1", "-threads=100"])
    check("-threads=100 are more than the" in done.stderr, f"-threads=100: {done.stderr}")
    execute([dsopt, "report", "run.jsonl", "-o", "run.html"])
    check(os.path.exists("run.html"), "dsopt report writes nothing")

    # Help, manual page and completion.
    answered("help", "words:\n", "train", "-zero=0|1|2|3")
    answered("help -lr", "-lr=X\n", "learning rate", "default: 0.001.")
    answered("help train", "dsopt train\n", "-train=GLOB")
    answered("-help=man", ".TH DSOPT 1", ".SS optimizer")
    answered("-completion=zsh", "#compdef dsopt", "'-zero=[")
    fish = answered("-completion=fish", "complete -c dsopt -n __fish_use_subcommand -a plan -d '", "complete -c dsopt -o zero -l zero -x -a '0 1 2 3' -d '",
                    "complete -c dsopt -o plan -l plan -a 'json ", "complete -c dsopt -o data -l data -r -F -d '", "complete -c dsopt -o quiet -l quiet -d '",
                    "complete -c dsopt -s o -r -F -d '", "the model\\'s outputs on -data").splitlines()
    words = answered("help").split("words:\n")[1].split("\n\n")[0].splitlines()
    check(len(fish) == len(words) + len(re.findall(r"^  -", answered("help"), re.M)), f"fish has {len(fish)} lines")
    for line in fish:  # each with its quotes closed
        check(re.fullmatch(r"complete -c dsopt( -[lonsa] [\w-]+| -[xrF]| -[ad] '([^'\\]|\\['\\])*')+", line), f"fish has {line}")
    answered("help completion", "-completion=bash|zsh|fish")
    script = answered("-completion bash") + """
complete() { :; }; compopt() { :; }
try() { COMP_LINE="$1" COMP_POINT=${#1} COMP_CWORD=$2; _dsopt; echo "${COMPREPLY[*]}"; }
try "dsopt x -micro-batch-s" 2; try "dsopt x --optimizer=ada" 2; try "dsopt pl" 1; try "dsopt x -plan=j" 2
"""
    got = execute(["bash", "-c", script]).stdout.splitlines()
    check(got == ["-micro-batch-size=", "adam adamw adagrad adafactor", "plan", "json"], f"bash completes to {got}")
print(f"{len(lines(WRONG)) + len(lines(WRONG_OF_PROGRAM))} wrong command lines are answered")
