"""The device that a script with the arguments DSOPT FOLDER|gpu WHAT runs programs on: one in software, or those that are there."""
import os
import sys

dsopt, folder, what = sys.argv[1:4]
is_real = folder == "gpu"
CUDA = ["-target=cuda", "-arch=" + (os.environ["DSOPT_GPU_ARCH"] if is_real else "sm_80")]


def device(**options):
    """The environment in which a program finds the device in software, or none of its own."""
    if is_real:
        return {}
    return {"LD_LIBRARY_PATH": folder, "SOFT_DEVICE": ",".join(f"{name}={value}" for name, value in options.items())}
