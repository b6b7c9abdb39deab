"""Executables for the CPU and for GPUs, on a device in software: where they run, that they say why, and what is said of each library
that a program for GPUs opens where it is missing, too old or another one.

usage: targets.py DSOPT FOLDER both | libraries
"""
import ctypes.util
import json
import os
import socket
import subprocess
import sys
import tempfile

from runs import check, execute, model, train

dsopt, folder, what = sys.argv[1:4]
path, data = model("mlp")
OPTIONS = ["-threads=1", "-lr=1e-2", "-reduction-shards=2"]
ONE, TWO = [*OPTIONS, "-micro-batches=2"], [*OPTIONS, "-dp=2", "-micro-batches=1"]


def device(**options):
    return {"LD_LIBRARY_PATH": folder, "SOFT_DEVICE": ",".join(f"{name}={value}" for name, value in options.items())}


def stands(place, **libraries):
    """An environment with these libraries: of the device in software, another one with nothing in it, or one of C. In place of the others
    there are empty files, which hide what this machine may have."""
    names = {"cuda": "libcuda.so.1", "cublasLt": "libcublasLt.so.13", "older": "libcublasLt.so.12", "nccl": "libnccl.so.2"}
    another = ctypes.util.find_library("m")
    another = next(f"{where}/{another}" for where in ["/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"] if os.path.exists(f"{where}/{another}"))
    own = tempfile.mkdtemp(dir=place)
    for name, file in names.items():
        kind = libraries.get(name)
        if kind in ("soft", "another"):
            os.symlink(another if kind == "another" else f"{folder}/{file}", f"{own}/{file}")
        elif kind:
            subprocess.run(["clang-22", "-shared", "-fPIC", "-x", "c", "-", "-o", f"{own}/{file}"], input=kind, text=True, check=True)
        else:
            open(f"{own}/{file}", "w").close()
    return {**device(devices=2, seed=1), "LD_LIBRARY_PATH": own}


def both():
    with tempfile.TemporaryDirectory() as place:
        program = f"{place}/train"

        def run(environment, *options, status=0):
            log = f"{place}/log"
            done = execute([program, f"-data={data}", f"-log={log}", *options], status, environment=environment)
            return done, [json.loads(line) for line in open(log)][-1]["end"]["weights_hash"] if status == 0 else None

        done = execute([dsopt, path, "-target=cpu,cuda", "-arch=sm_80,sm_89,x86-64-v3", "-o", program, "-steps=2", *ONE])
        check("for 1 rank, compiled with -arch=x86-64-v3 " in done.stdout and ", on a GPU or the CPU;" in done.stdout, f"what was written: {done.stdout}")
        check(done.stderr.count("parameters") <= 1, f"the model is described twice: {done.stderr}")
        os.environ.update(device(seed=1))
        gpu = train(dsopt, "mlp", "-target=cuda", "-arch=sm_80", "-steps=2", *ONE).hash
        os.environ["DSOPT_PTXAS"] = "off"
        check(train(dsopt, "mlp", "-target=cuda", "-arch=sm_80", "-steps=2", *ONE).hash == gpu, "without ptxas the bits differ")
        del os.environ["DSOPT_PTXAS"]
        cpu = train(dsopt, "mlp", "-arch=x86-64-v3", "-steps=2", *ONE).hash
        check(gpu != cpu, "one hash under both targets: nothing would tell them apart")

        # Where it runs follows from what is there.
        none = stands(place)
        cases = [(gpu, "runs on the GPU (-run-on=cpu runs it on the CPU)", device(seed=2)),
                 (cpu, "runs on the CPU, not on a GPU: no CUDA driver: ", none),
                 (cpu, "not on a GPU: the CUDA driver is version 11.0, expected 12.0 or newer", device(driver=11000)),
                 (cpu, "not on a GPU: the CUDA driver finds no device", device(devices=0)),
                 (cpu, "not on a GPU: the CUDA driver, version 13.0, does not start: CUDA_ERROR_NOT_INITIALIZED", device(init=3)),
                 (cpu, "not on a GPU: the program was compiled for sm_80, sm_89, but this machine's", device(arch=75)),
                 (cpu, "not on a GPU: no cuBLASLt: ", stands(place, cuda="soft")),
                 # A driver that ends its process does not end this one.
                 (cpu, "not on a GPU: the process that asked the CUDA driver ended by signal 6",
                  stands(place, cuda="void abort(void); __attribute__((constructor)) static void start(void) { abort(); }"))]
        for expected, text, environment in cases:
            done, got = run(environment)
            check(got == expected, f"'{text}': hash {got}, expected {expected}: {done.stdout}")
            check(text in done.stdout, f"expected '{text}', got: {done.stdout}{done.stderr}")

        # Or from what is asked for, now or when it was compiled.
        done, got = run(device(seed=1), "-run-on=cpu")
        check(got == cpu and "runs on" not in done.stdout, f"-run-on=cpu: {got}: {done.stdout}")
        check(run(device(seed=1), "-run-on=cuda")[1] == gpu, "-run-on=cuda has other bits")
        done, _ = run(none, "-run-on=cuda", status=2)
        check("no CUDA driver" in done.stderr and done.stderr.count("error:") == 1, f"-run-on=cuda without a driver: {done.stderr}")
        execute([dsopt, path, "-target=cpu,cuda", "-arch=sm_80,x86-64-v3", "-run-on=cpu", "-o", program, "-steps=2", *TWO])
        check(run(device(devices=2, seed=1))[1] == cpu, "compiled with -run-on=cpu: other bits")
        # Several ranks find their devices after the choice; checkpoints go on elsewhere.
        done, got = run(device(devices=2, seed=1), "-run-on=cuda")
        check(got == gpu, f"two ranks: {got}, expected {gpu}")
        run(device(devices=2, seed=1), "-run-on=cuda", "-steps=1", f"-save={place}/c")
        done, _ = run(none, "-run-on=cpu", f"-resume={place}/c")
        check("resumed from" in done.stdout and "step 1/2" in done.stdout and "step 0/2" not in done.stdout, f"resumed on the CPU: {done.stdout}")

        # Ranks of machines that are not alike: nobody trains half on GPUs.
        ports = socket.socket()
        ports.bind(("127.0.0.1", 0))
        port = ports.getsockname()[1]
        ports.close()
        execute([dsopt, path, "-target=cpu,cuda", "-arch=sm_80,x86-64-v3", "-o", program, "-steps=2", *TWO])
        apart = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        ranks = [subprocess.Popen([program, f"-data={data}", "-insecure"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, **apart, **(device(seed=1) if rank == 0 else none), "RANK": str(rank)}) for rank in range(2)]
        said = [rank.communicate(timeout=100) for rank in ranks]
        text = "".join(errors for _, errors in said)
        check(all(rank.returncode == 1 for rank in ranks) and text.count("error:") == 1 and "-run-on" in text,
              f"one rank on a GPU, one on the CPU: {[rank.returncode for rank in ranks]} {text}")

        # What only one of them has.
        plan = execute([dsopt, path, "-target=cpu,cuda", "-plan", *ONE]).stdout
        alone = [execute([dsopt, path, f"-target={one}", "-plan", *ONE]).stdout for one in ("cuda", "cpu")]
        check(plan == f"-target=cuda\n{alone[0]}-target=cpu\n{alone[1]}", f"both plans: {plan}")
        for options, text in [(["-run", f"-data={data}"], "with -run give one of them"), (["-emit=ptx"], "with -emit give one of them"),
                              (["-plan=json"], "with -plan=json give one of them"), (["-matmul-precision=high"], "which CPUs do not have")]:
            done = execute([dsopt, path, "-target=cpu,cuda", *options, *ONE], 1)
            check(text in done.stderr, f"expected '{text}', got {done.stderr}")
        execute([dsopt, path, "-o", program, *ONE])
        done, _ = run(device(seed=1), "-run-on=cuda", status=1)
        check("option -run-on=cuda: the program is for cpu alone; compile it with -target=cpu,cuda" in done.stderr, f"one target alone: {done.stderr}")
    print("an executable for both runs where it can")


def libraries():
    """Each is named, with the version that is there and the one that is needed; one message, status 2."""
    with tempfile.TemporaryDirectory() as place:
        program = f"{place}/train"
        execute([dsopt, path, "-target=cuda", "-arch=sm_80", "-dp=2", "-micro-batches=1", "-threads=1", "-steps=1", "-o", program])
        whole = stands(place, cuda="soft", cublasLt="soft", nccl="soft")
        older = {**whole, "SOFT_DEVICE": "devices=2,driver=12040"}
        cases = [(["no CUDA driver: ", "libcuda.so.1: file too short; the program needs a machine with an NVIDIA GPU and driver 12.0 or newer"], stands(place)),
                 (["the CUDA driver is version 0.0 and has no cuInit, expected 12.0 or newer"], stands(place, cuda="another")),
                 (["the CUDA driver is version 13.0 and has no cuInit, expected 12.0 or newer"],
                  stands(place, cuda="int cuDriverGetVersion(int *version) { *version = 13000; return 0; }")),
                 (["the CUDA driver is version 11.8, expected 12.0 or newer"], {**whole, "SOFT_DEVICE": "driver=11080"}),
                 (["the CUDA driver finds no device (CUDA_VISIBLE_DEVICES"], {**whole, "SOFT_DEVICE": "devices=0"}),
                 (["the CUDA driver, version 13.0, does not start: error 803"], {**whole, "SOFT_DEVICE": "init=803"}),
                 (["no cuBLASLt: ", "libcublasLt.so.13: file too short; ", "libcublasLt.so.12: file too short; the program needs version 12.0.0 or newer"],
                  stands(place, cuda="soft")),
                 # Of an older driver the newer library is none.
                 (["no cuBLASLt: ", "libcublasLt.so.12: file too short; the program needs version 12.0.0 or newer"], older),
                 (["cuBLASLt is version 0.0.0 and has no cublasLt", "expected 12.0.0 or newer"], stands(place, cuda="soft", cublasLt="another")),
                 (["cuBLASLt is version 11.8.5, expected 12.0.0 or newer"], {**whole, "SOFT_PRODUCTS_VERSION": "110805"})]
        joins = [(["-engine=nccl: no libnccl.so.2: ", "libnccl.so.2: file too short; expected NCCL 2.18.0 or newer"],
                  stands(place, cuda="soft", cublasLt="soft")),
                 (["-engine=nccl: libnccl.so.2 is version 0.0.0 and has no nccl", "expected 2.18.0 or newer"],
                  stands(place, cuda="soft", cublasLt="soft", nccl="another")),
                 (["-engine=nccl: libnccl.so.2 is version 2.17.1, expected 2.18.0 or newer"], {**whole, "SOFT_NCCL": "version=21701"})]
        for texts, environment in cases + joins:
            engine = ["-engine=nccl"] if (texts, environment) in joins else []
            done = execute([program, f"-data={data}", "-quiet", *engine], 2, timeout=60, environment=environment)
            check(all(text in done.stderr for text in texts), f"expected {texts}, got: {done.stderr}")
            check(done.stderr.count("error:") == 1, f"expected one message, got: {done.stderr}")
        # Without NCCL and without a word of it, ranks go by their hosts and say so.
        done = execute([program, f"-data={data}"], environment=stands(place, cuda="soft", cublasLt="soft"))
        check("not by NCCL: no libnccl.so.2: " in done.stdout, f"without NCCL: {done.stdout}")
        execute([program, f"-data={data}", "-quiet"], environment=whole)
    print(f"{len(cases) + len(joins)} libraries that are missing, too old or others")


{"both": both, "libraries": libraries}[what]()
