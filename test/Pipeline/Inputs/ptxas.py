#!/usr/bin/env python3
"""Says of each kernel what ptxas says, with one number of registers for all, and makes an empty cubin."""
import re
import sys

text = open(sys.argv[4]).read()
for name in re.findall(r"\.entry ([\w$]+)", text):
    print(f"ptxas info    : Compiling entry function '{name}' for '{sys.argv[1][6:]}'")
    print(f"ptxas info    : Function properties for {name}\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads")
    print("ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]")
open(sys.argv[6], "w").close()
