"""Checkpoints: the bits of an uninterrupted run in every layout that goes on,
after kills at random moments and after signals; what is damaged is refused or left
out, and one run at a time saves into a folder.

usage: checkpoints.py DSOPT [KILLS]
"""
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from runs import MPIRUN, check, execute, model, varied
from sampled import sampled

dsopt = sys.argv[1]
kills = int(sys.argv[2]) if len(sys.argv) > 2 else 6
path, data = model("gpt2-tiny")
STEPS = 8
folder = tempfile.mkdtemp(prefix="checkpoints-")
log = os.path.join(folder, "log.jsonl")


def command(*options, name=path):
    return [dsopt, name, "-run", f"-data={data}", "-quiet", f"-steps={STEPS}", "-lr=3e-3", "-lr-schedule=cosine",
            "-warmup-steps=2", "-grad-clip=1", f"-log={log}", *options]


def result(*options, prefix=()):
    if os.path.exists(log) and "-resume" not in " ".join(options):
        os.remove(log)
    execute([*prefix, *command(*options)])
    lines = [json.loads(line) for line in open(log)]
    return lines[-1]["end"]["weights_hash"], [line for line in open(log) if '"step":' in line]


def loss_text(lines):
    return {json.loads(line)["step"]: line.split('"loss":')[1].split(",")[0] for line in lines}


def layouts(precision):
    """Saved by 4 ranks at ZeRO 1 with K = V = 8; goes on in all layouts that CONTRACT allows."""
    batch = ["-reduction-shards=8", "-accumulate=local", f"-precision={precision}"]
    save = os.path.join(folder, "layouts-" + precision)
    whole, lines = result("-dp=4", "-zero=1", "-micro-batches=2", *batch, f"-save={save}", "-save-every=5")
    expected = loss_text(lines)
    check(sorted(os.listdir(save)) == ["step-00000005", "step-00000008"], f"saved {os.listdir(save)}")
    grids = [("-pp=2", "-zero=3", "-dp=2"), ("-dp=1",), ("-dp=8", "-zero=2"), ("-pp=4",), ("-dp=2", "-threads=2")]
    for layout in sampled(grids, 3):
        if os.path.exists(log):
            os.remove(log)
        again, lines = result(*layout, f"-precision={precision}", f"-resume={save}/step-00000005")
        check(again == whole, f"{precision} {layout}: {again}, expected {whole}")
        for step, text in loss_text(lines).items():
            check(text == expected[step], f"{precision} {layout}: step {step} {text}, expected {expected[step]}")
    again, _ = result("-dp=2", "-zero=2", f"-precision={precision}", f"-resume={save}/step-00000005", prefix=[*MPIRUN, "2"])
    check(again == whole, f"{precision} mpirun: {again}, expected {whole}")
    print(f"{precision}: layouts go on with the bits of one run: {whole[:16]}", flush=True)
    return save


def another_batch(save):
    step = f"-resume={save}/step-00000005"
    text = execute(command("-dp=3", step), status=1).stderr
    check("under -dp of 1, 2, 4, 8, not 3" in text, text)
    text = execute(command("-dp=2", "-micro-batches=3", "-reduction-shards=2", step), status=1).stderr
    check("was written with K 8 micro-batches a step" in text and "-micro-batches=4" in text, text)
    execute(command("-dp=3", "-resume-new-batch", step))
    print("another batch: refused with the degrees that go on, or taken where asked", flush=True)


def damages(save):
    def broken(change):
        copy = os.path.join(folder, "broken")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(os.path.join(save, "step-00000008"), copy)
        change(copy)
        return execute(command("-dp=2", "-steps=9", f"-resume={copy}"), status=1).stderr

    def flip(name, share):
        def change(copy):
            with open(os.path.join(copy, name), "r+b") as file:
                place = int(os.path.getsize(file.name) * share)
                file.seek(place)
                byte = file.read(1)
                file.seek(place)
                file.write(bytes([byte[0] ^ 16]))
        return change

    for name in ("model.safetensors", "optimizer.safetensors"):
        text = broken(flip(name, 0.7))
        check(name in text and "has changed since the checkpoint was written" in text and text.count("error:") == 1, text)
        text = broken(lambda copy: os.truncate(os.path.join(copy, name), os.path.getsize(os.path.join(copy, name)) - 1))
        check(name in text and "it had" in text, text)
        text = broken(lambda copy: os.remove(os.path.join(copy, name)))
        check(name in text and "cannot read" in text, text)
    for share in (0.1, 0.5, 0.9):
        text = broken(flip("manifest.json", share))
        check("manifest.json is damaged" in text, text)
    text = broken(lambda copy: os.truncate(os.path.join(copy, "manifest.json"), 100))
    check("manifest.json is damaged" in text, text)
    text = broken(lambda copy: os.remove(os.path.join(copy, "manifest.json")))
    check("there is no complete checkpoint" in text, text)
    other, batches = model("mlp")
    done = execute([dsopt, other, "-run", f"-data={batches}", "-quiet", f"-resume={save}", "-dp=2"], status=1)
    check("is of another model or optimizer" in done.stderr, done.stderr)
    for option in ("-init=normal:0.02", f"-weights={save}/step-00000005/model.safetensors"):
        check(f"option {option} has no effect on what the checkpoint of -resume has" in execute(command("-dp=2", option, f"-resume={save}")).stderr, option)
    done = execute(command("-dp=2", "-optimizer=sgd", f"-resume={save}"), status=1)
    check("was written with -optimizer=adamw; the program has sgd" in done.stderr, done.stderr)
    print("damaged checkpoints are refused with the file and the reason", flush=True)


def frozen():
    """What was frozen is trained, and the other way round: refused with what works, which works."""
    other, batches = model("mlp")
    base = [dsopt, other, "-run", f"-data={batches}", "-quiet", "-steps=2"]
    for first, second, words in ((["-freeze=net.0.*"], [], "is trained now and was frozen when"),
                                 ([], ["-freeze=net.0.*"], "is frozen now and was trained when")):
        save = os.path.join(folder, f"frozen{len(first)}")
        execute([*base, *first, f"-save={save}"])
        text = execute([*base, "-steps=4", *second, f"-resume={save}"], status=1).stderr
        check(f"'net.0.weight' {words}" in text or f"'net.0.bias' {words}" in text, text)
        execute([*base, *second, "-weights=" + text.split("-weights=")[1].split()[0]])
        execute([*base, "-steps=4", *first, f"-resume={save}"])
    print("unfreezing says what to do", flush=True)


def killed():
    """Kills the whole run at random moments; every -resume=auto goes on with the same bits."""
    options = ["-dp=2", "-pp=2", "-zero=2", "-micro-batches=2", "-steps=60"]
    expected, _ = result(*options)
    save = os.path.join(folder, "killed")
    generator = random.Random(1)
    program = os.path.join(folder, "program")
    execute([dsopt, path, "-o", program, f"-data={data}", *options[:4], "-grad-clip=1"])
    run = [program, f"-data={data}", "-quiet", "-steps=60", "-lr=3e-3", "-lr-schedule=cosine", "-warmup-steps=2",
           "-grad-clip=1", f"-save={save}", "-save-every=1", "-save-keep=2", "-resume=auto", f"-log={log}"]
    began = time.monotonic()
    execute([*run[:-1], "-steps=60"])
    duration = time.monotonic() - began
    shutil.rmtree(save)
    done = 0
    while done < kills:
        process = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        try:
            process.wait(timeout=generator.uniform(0.02, duration / 3))
            shutil.rmtree(save)  # it came to its end: once more from the start
            continue
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            done += 1
    if os.path.exists(log):
        os.remove(log)
    execute(run)
    end = [json.loads(line) for line in open(log)][-1]["end"]
    check(end["weights_hash"] == expected, f"after {kills} kills {end}, expected {expected}")
    check(len(os.listdir(save)) == 2, f"-save-keep=2 left {os.listdir(save)}")
    print(f"{kills} kills at random moments, the same bits", flush=True)


def signals():
    save = os.path.join(folder, "signals")
    options = ["-dp=2", "-micro-batches=2"]
    expected, _ = result(*options, "-steps=400")
    os.remove(log)
    process = subprocess.Popen(varied(command(*options, "-steps=400", f"-save={save}")))
    while process.poll() is None and not (os.path.exists(log) and sum('"step"' in line for line in open(log)) > 5):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=30) == 3, f"status {process.returncode}, expected 3")
    check(len(os.listdir(save)) == 1, f"saved {os.listdir(save)}")
    again, lines = result(*options, "-steps=400", f"-save={save}", "-resume=auto")
    check(again == expected, f"after SIGTERM {again}, expected {expected}")
    steps = [json.loads(line)["step"] for line in lines]
    check(steps == list(range(400)), "the log was not continued")
    print(f"SIGTERM after {os.listdir(save)[0]}: saved, went on with the same bits, the log continued", flush=True)


def full_disk():
    """A file size limit stands for the disk: the second checkpoint does not fit, the first one stays."""
    save = os.path.join(folder, "full")
    execute(command("-steps=1", f"-save={save}"))
    size = os.path.getsize(os.path.join(save, "step-00000001", "optimizer.safetensors"))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    program = os.path.join(folder, "full-program")
    execute([dsopt, path, "-o", program, f"-data={data}", "-grad-clip=1"])
    done = subprocess.run([program, f"-data={data}", "-quiet", "-steps=2", f"-save={save}", "-resume=auto", "-lr=3e-3",
                           "-lr-schedule=cosine", "-warmup-steps=2", "-grad-clip=1"],
                          capture_output=True, text=True, preexec_fn=limit)
    check(done.returncode == 2 and "writing failed" in done.stderr and done.stderr.count("error:") == 1,
          f"{done.returncode}: {done.stderr}")
    check(os.listdir(save) == ["step-00000001"], f"left {os.listdir(save)}")
    execute(command("-steps=2", f"-save={save}", "-resume=auto"))
    print(f"no room: {done.stderr.strip()}", flush=True)


def replaced():
    """Kills at each change of names while checkpoints are replaced (the newest one is damaged): the same bits, and at no
    moment is there less than there was."""
    options = ["-dp=2", "-zero=2", "-micro-batches=2"]
    expected, _ = result(*options)
    start = os.path.join(folder, "replaced")
    execute(command(*options, "-steps=6", "-lr-decay-steps=8", f"-save={start}", "-save-every=3"))
    with open(os.path.join(start, "step-00000006", "optimizer.safetensors"), "r+b") as file:
        file.seek(-100, os.SEEK_END)
        file.write(b"damaged")
    program = os.path.join(folder, "replacing")
    execute([dsopt, path, "-o", program, f"-data={data}", *options, "-grad-clip=1"])
    generator = random.Random(2)
    seen = set()
    for _ in range((kills + 1) // 2):
        save = os.path.join(folder, "replaced-again")
        shutil.rmtree(save, ignore_errors=True)
        shutil.copytree(start, save)
        run = [program, *command(f"-save={save}", "-save-every=1", "-save-keep=2", "-resume=auto")[3:]]
        process = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        # Some moment of the second save's, which replaces what is damaged.
        while process.poll() is None and not os.path.exists(os.path.join(save, "step-00000005")):
            time.sleep(0.001)
        time.sleep(generator.uniform(0, 0.05))
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        seen.update(os.listdir(save))
        # On a machine with other work the kill comes later, and the run has gone on.
        check(any(os.path.exists(os.path.join(save, f"step-0000000{step}")) for step in (5, 7, 8)), f"left {os.listdir(save)}")
        again, _ = result(*options, f"-save={save}", "-save-every=1", "-save-keep=2", "-resume=auto")
        check(again == expected, f"after a kill {again}, expected {expected}")
        check(sorted(os.listdir(save)) == ["step-00000007", "step-00000008"], f"left {os.listdir(save)}")
        execute([dsopt, f"-check={save}"])
    print(f"{(kills + 1) // 2} kills while a checkpoint is replaced, the same bits; seen: {sorted(seen)}", flush=True)


def shared():
    """Two runs that save into one folder: the second is refused, the first does not notice."""
    save = os.path.join(folder, "shared")
    options = ["-dp=2", "-steps=1000000", "-micro-batches=2"]
    process = subprocess.Popen(varied(command(*options, f"-save={save}", "-save-every=1")))
    while process.poll() is None and not (os.path.isdir(save) and any(name.startswith("step-") for name in os.listdir(save))):
        time.sleep(0.01)
    for wanted in (["-resume=auto"], ["-save-existing=aside"]):
        text = execute(command(*options, "-steps=2", f"-save={save}", *wanted), status=1).stderr
        check(f"another run saves into {save} (process " in text and "wait for its end, or choose another folder" in text, text)
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=30) == 3, f"status {process.returncode}, expected 3")
    check(len(os.listdir(save)) == 3, f"saved {os.listdir(save)}")
    execute([dsopt, f"-check={save}"])
    execute(command(*options, "-steps=2", f"-save={save}", "-save-existing=aside"))
    print("a second run in the folder is refused", flush=True)


try:
    saved = layouts("fp32")
    layouts("bf16")
    another_batch(saved)
    damages(saved)
    frozen()
    signals()
    full_disk()
    killed()
    replaced()
    shared()
finally:
    shutil.rmtree(folder)
