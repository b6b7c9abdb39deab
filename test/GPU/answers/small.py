"""Steps of small models: does it start, are kernels right, is there one hash."""
import ctypes
import glob
import importlib.metadata
import os
import re
import shutil
import subprocess

import gpu
from context import Absent, Failed, check, differ

UNIT = re.compile(r"^\[ +(RUN|OK|FAILED) +\] (\S+?)(?: \(|,|$)", re.M)
# Name, functions that give the version, and how the files are called, new ones first.
LIBRARIES = {"cublaslt": ("cublasLtGetVersion", ["libcublasLt.so.13", "libcublasLt.so.12"]), "cudnn": ("cudnnGetVersion", ["libcudnn.so.9"]),
             "nccl": ("ncclGetVersion", ["libnccl.so.2"])}


def version_of(function, names, folders):
    """Version and path of a library as programs find it, or why there is none."""
    why = "not found"
    for name in names:
        for path in [os.path.join(folder, name) for folder in folders if os.path.exists(os.path.join(folder, name))] + [name]:
            try:
                library = ctypes.CDLL(path)
            except OSError as error:
                why = why if path == name else str(error)
                continue
            call = getattr(library, function)
            if function == "ncclGetVersion":
                number = ctypes.c_int()
                call(ctypes.byref(number))
                return {"version": number.value, "file": path}
            call.restype = ctypes.c_size_t
            return {"version": call(), "file": path}
    return {"absent": why}


def find_ncu():
    """Nsight Compute's command line."""
    places = [shutil.which("ncu"), "/usr/local/cuda/bin/ncu", *sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"), reverse=True)]
    return next((path for path in places if path and os.path.exists(path)), None)


def start(context):
    """Which driver, GPUs and libraries there are."""
    version, devices = gpu.driver_version(), []
    for index, (name, capability) in enumerate(gpu.gpus()):
        free, total = gpu.memory(index)
        devices.append({"name": name, "capability": "{}.{}".format(*capability), "arch": gpu.architecture(capability), "memory_mib": total >> 20, "free_mib": free >> 20})
    kernel = "/proc/driver/nvidia/version"
    module = open(kernel).readline().strip() if os.path.exists(kernel) else ""
    context.note(driver=version, kernel_module=module, devices=devices)
    folders = context.environment()["LD_LIBRARY_PATH"].split(os.pathsep)
    found = {name: version_of(*how, folders) for name, how in LIBRARIES.items()}
    for module in ("numpy", "torch", "triton"):
        try:
            found[module] = {"version": importlib.metadata.version(module)}
        except importlib.metadata.PackageNotFoundError:
            found[module] = {"absent": "not installed"}
    ncu = find_ncu()
    if ncu:
        said = subprocess.run([ncu, "--version"], capture_output=True, text=True).stdout
        found["ncu"] = {"version": (re.findall(r"Version (\S+)", said) or ["?"])[0], "file": ncu}
    else:
        found["ncu"] = {"absent": "not found"}
    context.note(libraries=found)
    compiled = context.package["arch"].split(",")
    mine = int(re.sub(r"\D", "", devices[0]["arch"]))
    runs = [arch for arch in compiled if arch == devices[0]["arch"] or (not arch.endswith("a") and int(re.sub(r"\D", "", arch)) <= mine)]
    check(runs, f"the package is compiled for {','.join(compiled)}, the GPU is {devices[0]['arch']}")
    check("version" in found["cublaslt"], f"cuBLASLt: {found['cublaslt'].get('absent')}")
    there = ", ".join(f"{name} {what['version']}" for name, what in found.items() if "version" in what)
    return f"{len(devices)} x {devices[0]['name']} ({devices[0]['arch']}, {devices[0]['memory_mib']} MiB), driver {version}; {there}"


def unit(context, program, filters):
    """Runs a unit test of the runtime on the GPU, a process for each filter: one that breaks the GPU's context leaves the rest alone."""
    failed, passed = [], 0
    for text in filters:
        status, said = context.execute([os.path.join(context.root, "units", program), f"--gtest_filter={text}"], accepts=range(-64, 256))
        ends = {name: what for what, name in UNIT.findall(said)}
        wrong = sorted(name for name, what in ends.items() if what != "OK")
        passed += sum(what == "OK" for what in ends.values())
        if wrong or status:
            lines = [line for line in said.splitlines() if "ailure" in line or "rror" in line or "hich is" in line or "xpected" in line]
            failed.append({"filter": text, "status": status, "tests": wrong, "said": "\n".join(lines[:12]) or said[-1024:]})
        context.note(**{program: {"passed": passed, "failed": failed}})
    return passed, failed


def kernels(context):
    """The runtime's kernels by their unit tests, the compiler's by losses of small models; all of them, whatever fails."""
    wrong, absent, passed = [], [], 0
    has_cudnn = "version" in version_of(*LIBRARIES["cudnn"], context.environment()["LD_LIBRARY_PATH"].split(os.pathsep))
    for program, filters in context.package["units"]["kernels"].items():
        if program == "DsoptRuntimeConvolutionsTest" and not has_cudnn:
            absent.append(program)
            continue
        right, failed = unit(context, program, filters)
        passed += right
        wrong += [name for entry in failed for name in entry["tests"] or [f"{program} {entry['filter']}"]]
    rows = {}
    for name, program in context.programs().items():
        if program.get("needs") == "cudnn" and not has_cudnn:
            absent.append(name)
            continue
        try:
            losses = context.train(name, *context.small(name)).losses
            apart = differ(losses, program["losses"])
            rows[name] = {"losses": losses, "host": program["losses"], "differ": apart, "within": program["within"]}
            if apart > program["within"]:
                wrong.append(f"{name}: losses {losses}, on the host {program['losses']}")
        except Failed as error:
            rows[name] = {"said": str(error)}
            wrong.append(f"{name}: {error}")
        context.note(programs=rows)
    context.note(absent_without_cudnn=absent)
    check(not wrong, f"{len(wrong)} wrong: " + "; ".join(wrong))
    return f"{passed} unit tests, and losses of {len(rows)} programs near the host's" + (f"; cuDNN is absent, and so are {', '.join(absent)}" if absent else "")


def mlp(context):
    """One executable for both: steps on the GPU and steps on the host, with norms of gradients."""
    options = [*context.small("mlp"), "-log-norms"]
    ours, host = (context.train("mlp", *options, f"-run-on={target}") for target in ("cuda", "cpu"))
    norms = {name: differ([run["grad_norms"][name] for run in ours.steps], [run["grad_norms"][name] for run in host.steps]) for name in host.steps[0]["grad_norms"]}
    apart = differ(ours.losses, host.losses)
    context.note(device=ours.head["device"], losses=ours.losses, host=host.losses, differ=apart, norms_differ=norms, step_ms=ours.step_ms(), host_step_ms=host.step_ms())
    check(apart <= 1e-5, f"losses {ours.losses}, on the host {host.losses}")
    worst = max(norms, key=norms.get)
    check(norms[worst] <= 1e-4, f"gradient norms of {worst} are {norms[worst]:.1e} from the host's")
    return f"losses within {apart:.1e} of the host's, gradient norms within {norms[worst]:.1e}; {ours.step_ms():.2f} ms a step"


def layouts(context):
    """The same bits in every layout of one batch; ranks share the GPU."""
    rows, hashes = {}, {}
    for name, program in context.programs().items():
        runs = [("", [])] + ([(" without graphs", ["-cuda-graph=off"])] if program["ranks"] == 1 and not rows else [])
        for text, more in runs:
            run = context.train(name, *context.small(name), *more)
            rows[name + text] = {"layout": program["options"], "hash": run.hash, "losses": run.losses, "engine": run.head["engine"], "step_ms": run.step_ms()}
            hashes.setdefault((run.hash, tuple(run.losses)), []).append(name + text)
            context.note(layouts=rows)
    check(len(hashes) == 1, f"{len(hashes)} hashes of one training: " + "; ".join(f"{', '.join(names)}: {key[0][:16]}" for key, names in hashes.items()))
    return f"{len(rows)} layouts, one hash {next(iter(hashes))[0][:16]}"


def need_torch():
    """Its version; for other steps."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        raise Absent("PyTorch is not installed in the Python that runs this") from None
