"""Kernels on a device behind the CUDA driver's calls: those of test/SoftDevice, or real ones."""
import ctypes
import re
import sys


class Device:
    def __init__(self, driver):
        self.cuda = ctypes.CDLL(driver)
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.ok("cuInit", 0)
        self.ok("cuDeviceGet", ctypes.byref(device), 0)
        self.ok("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.ok("cuCtxSetCurrent", context)

    def ok(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, ctypes.byref(text))
            sys.exit(f"{name}: {text.value.decode() if text.value else status}")

    def load(self, path):
        return Module(self, path)

    def upload(self, array, copies):
        address = ctypes.c_uint64()
        self.ok("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 1)))
        if copies and array.nbytes:
            self.ok("cuMemcpyHtoD_v2", address, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return address


class Module:
    """A PTX file. Kernels take a range and pointers."""

    def __init__(self, device, path):
        self.device, self.module = device, ctypes.c_void_p()
        text = open(path, "rb").read()
        device.ok("cuModuleLoadData", ctypes.byref(self.module), text)
        self.threads = {name.decode(): int(count) for name, count in re.findall(rb"\.entry (\S+)\([^)]*\)\s*\.reqntid (\d+)", text)}

    def call(self, name, ranges, buffers, outputs):
        """What is only written has nothing in it before. Grids are of a size of their own for each range."""
        function = ctypes.c_void_p()
        # PTX has no dots in names.
        name = name.replace(".", "$")
        self.device.ok("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
        places = [self.device.upload(buffer, copies=i < len(buffers) - outputs) for i, buffer in enumerate(buffers)]
        for i, (begin, end) in enumerate(ranges):
            values = [ctypes.c_int64(begin), ctypes.c_int64(end), *places]
            pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
            blocks = (1, 3, 17)[(begin + i) % 3]
            self.device.ok("cuLaunchKernel", function, blocks, 1, 1, self.threads[name], 1, 1, 0, None, pointers, None)
        for buffer, place in zip(buffers, places):
            if buffer.nbytes:
                self.device.ok("cuMemcpyDtoH_v2", buffer.ctypes.data_as(ctypes.c_void_p), place, ctypes.c_size_t(buffer.nbytes))
            self.device.ok("cuMemFree_v2", place)
