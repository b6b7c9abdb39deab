"""Executables that lie on disks. Each has the runtime it was written with, so it runs as long as the machine does; what is old here is the program in
it, behind today's runtime. A program whose table is of another version is refused by name, in an executable and alone.

usage: executable.py DSOPT-RUN
"""
import json
import os
import re
import sys
import tempfile

from formats import READ, check, embed, execute, fixture, footer_of, near, packed, refused
from runs import SOURCE, Run

runtime = open(sys.argv[1], "rb").read()
GETS = {"v1": "version 20, this runtime expects 26: compile the program anew", "v2": "version 21, this runtime expects 26: compile the program anew",
        "v3": "version 22, this runtime expects 26: compile the program anew",
        "v4": "version 23, this runtime expects 26: compile the program anew", "v5": "version 24, this runtime expects 26: compile the program anew",
        "v6": READ}


def defined(header, name):
    return int(re.search(rf"^#define {name} (\d+)$", open(os.path.join(SOURCE, "include", "dsopt", "Runtime", header)).read(), re.M)[1])


table = defined("ABI.h", "DSOPT_ABI_VERSION")
with tempfile.TemporaryDirectory() as folder:
    def at(name):
        return os.path.join(folder, name)

    for version, gets in GETS.items():
        last = packed(version, "executable.xz")
        program, footer = last[:-80], last[-80:]
        (_, size, *_), magic, number = footer_of(footer)
        check((size, magic, number) == (len(program), b"DSOPTOBJ", 3), f"the footer of {version} says {size} bytes, {magic}, version {number}")
        (own,) = re.findall(rb'"version":(\d+),"dsopt"', program)
        data = f"-data={fixture(version, 'data.npz')}"
        train = embed(runtime, program, footer, at("train"))
        open(at("program.so"), "wb").write(program)
        for command in ([train], [sys.argv[1], at("program.so")]):
            # Where the model was when it was compiled it is no more.
            run = [*command, data, f"-weights={fixture(version)}", "-quiet", f"-log={at('log.jsonl')}"]
            if gets is READ:
                execute(run)
                expected = json.load(open(fixture(version, "expected.json")))["executable"]
                near(Run(at("log.jsonl")).losses, expected, f"the program of {version}")
            else:
                refused(run, gets)

        # Of another version.
        older = str(int(own) - 1).encode().rjust(len(own), b"0")
        other = program.replace(b'"version":' + own + b',"dsopt"', b'"version":' + older + b',"dsopt"')
        says = f"version {int(older)}, this runtime expects {table}: compile the program anew"
        refused([embed(runtime, other, footer, at("other")), data], says)
        open(at("other.so"), "wb").write(other)
        refused([sys.argv[1], at("other.so"), data], f"{at('other.so')}: ", says)
        # It may call what the runtime does not have any more.
        call = re.search(rb"dsopt_rt_\w+", other)[0]
        open(at("calls.so"), "wb").write(other.replace(call + b"\0", call[:-1] + b"Q\0"))
        refused([sys.argv[1], at("calls.so"), data], says)
        if gets is READ:
            open(at("calls.so"), "wb").write(program.replace(call + b"\0", call[:-1] + b"Q\0"))
            refused([sys.argv[1], at("calls.so"), data], "cannot be loaded as a dsopt program", "undefined symbol: " + call[:-1].decode() + "Q")
        # The runtime before a footer wrote it: another version is damage.
        number = (defined("Footer.h", "DSOPT_FOOTER_VERSION") + 1).to_bytes(8, "little")
        refused([embed(runtime, program, footer[:-8] + number, at("footer")), data], "this executable is damaged (the footer at its end", "compile it again")
    print(f"programs of {', '.join(GETS)}: each gets what is said of it, other versions are refused by name")
