"""The GPUs of this machine, as the driver says, and where pip has put CUDA's libraries."""
import ctypes
import glob
import lzma
import os
import re
import sys
import tarfile

# By compute capability; what is not here compiles the PTX of the one below.
ARCHITECTURES = {(8, 0): "sm_80", (8, 9): "sm_89", (9, 0): "sm_90a", (10, 0): "sm_100a"}
MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
NO_DEVICE = 100
TOOLKIT = ["/usr/local/cuda/lib64"]
# What a package brings along of a program's libraries, as ldd lists them: a bare machine may lack them.
BARE = re.compile(r"^\s*(lib(?:dnnl|OpenCL|gomp|crypto|z)\.so\S*) => (\S+)", re.M)


class NoGPU(Exception):
    pass


def architecture(capability):
    """What to compile for: a letter's instructions are of one architecture alone."""
    if capability in ARCHITECTURES:
        return ARCHITECTURES[capability]
    below = [known for known in ARCHITECTURES if known < capability]
    if not below:
        raise NoGPU(f"the GPU has compute capability {capability[0]}.{capability[1]}, expected 8.0 or newer")
    return ARCHITECTURES[max(below)].rstrip("a") if max(below) < (10, 0) else "sm_90"


def opened():
    """The driver, after its start."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NoGPU(f"no NVIDIA driver: {error}") from None
    status = driver.cuInit(0)
    if status not in (0, NO_DEVICE):
        raise NoGPU(f"the driver says error {status} of cuInit")
    return driver


def count_of(driver):
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    if not count.value:
        raise NoGPU("the driver finds no GPU")
    return count.value


def driver_version():
    """Of CUDA, as 13.0."""
    version = ctypes.c_int()
    opened().cuDriverGetVersion(ctypes.byref(version))
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def memory(index=0):
    """Free and all bytes of a GPU, whoever has the rest."""
    driver, free, total = opened(), ctypes.c_size_t(), ctypes.c_size_t()
    count_of(driver)
    device, primary, before = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    for status in (driver.cuDeviceGet(ctypes.byref(device), index), driver.cuCtxGetCurrent(ctypes.byref(before)),
                   driver.cuDevicePrimaryCtxRetain(ctypes.byref(primary), device), driver.cuCtxSetCurrent(primary),
                   driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))):
        if status:
            raise NoGPU(f"the driver says error {status} where it is asked for its memory")
    driver.cuCtxSetCurrent(before)
    driver.cuDevicePrimaryCtxRelease_v2(device)
    return free.value, total.value


def gpus():
    """Names and compute capabilities."""
    driver, found = opened(), []
    for index in range(count_of(driver)):
        device, name, capability = ctypes.c_int(), ctypes.create_string_buffer(100), []
        driver.cuDeviceGet(ctypes.byref(device), index)
        driver.cuDeviceGetName(name, 100, device)
        for attribute in (MAJOR, MINOR):
            value = ctypes.c_int()
            driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            capability.append(value.value)
        found.append((name.value.decode(), tuple(capability)))
    return found


def libraries(build=None):
    """Folders with cuBLASLt, cuDNN and NCCL of pip: in the build's environment, else in that of this Python; then the toolkit's."""
    sites = [os.path.join(build, "venv", "lib", "python*", "site-packages")] if build else []
    sites += [path for path in sys.path if path.endswith("-packages")]
    found = [folder for site in sites for folder in sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib")))]
    return found + [folder for folder in TOOLKIT if os.path.isdir(folder)]


def archive(path, folder):
    """Packs a folder. A program is the runtime and a small object: what all have in common a large window finds."""
    def write(**file):
        with tarfile.open(mode="w", **file) as made:
            made.add(folder, os.path.basename(folder))

    if path.endswith(".tar"):
        return write(name=path)
    with lzma.open(path, "wb", filters=[{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 256 << 20}]) as file:
        write(fileobj=file)


def environment(build=None):
    """In which programs find the libraries; those of the system come first, with what is given."""
    given = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path]
    return {"LD_LIBRARY_PATH": os.pathsep.join(given + libraries(build))}
