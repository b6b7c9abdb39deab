"""What compressed communication gains over a slow link: a GPT trained by ranks in network namespaces of one machine, joined by
a bridge whose ports pass so many bits a second, over TCP. Needs root. Usage: ./dev bench-link, options with --help.
"""
import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

from measure import middle

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: Applied steps of the ordinary exchange, then those that are measured.
WARM_UP, MEASURED = 3, 8
#: By name: options, and whether their steps before the freeze are the ones to measure.
WAYS = {"fp32": ["-zero=0"], "fp16": ["-zero=0", "-precision=fp16", "-gradient-type=param"], "int4": ["-zero=0", "-reduce-type=int4"],
        "onebit-adam": ["-zero=0", "-optimizer=onebit-adam", f"-freeze-step={WARM_UP}"]}


def call(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stdout.strip()}")


class Link:
    """A namespace for each rank with one address, 10.77.0.1 and so on; each port passes `rate` in both directions."""

    def __init__(self, ranks, rate):
        self.ranks, self.rate = ranks, rate
        self.bridge = f"ds{os.getpid()}"

    def space(self, rank):
        return f"{self.bridge}r{rank}"

    def __enter__(self):
        call("ip", "link", "add", self.bridge, "type", "bridge")
        call("ip", "link", "set", self.bridge, "up")
        for rank in range(self.ranks):
            space, port = self.space(rank), f"{self.bridge}p{rank}"
            call("ip", "netns", "add", space)
            call("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
            call("ip", "link", "set", port, "master", self.bridge, "up")
            call("ip", "-n", space, "addr", "add", f"10.77.0.{rank + 1}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                call("ip", "-n", space, "link", "set", device, "up")
            limit = ["root", "tbf", "rate", self.rate, "burst", "256kb", "latency", "50ms"]
            call("tc", "-n", space, "qdisc", "add", "dev", "eth0", *limit)
            call("tc", "qdisc", "add", "dev", port, *limit)
        return self

    def __exit__(self, *_):
        for rank in range(self.ranks):
            subprocess.run(["ip", "netns", "del", self.space(rank)], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", self.bridge], stderr=subprocess.DEVNULL)

    def within(self, rank):
        return ["ip", "netns", "exec", self.space(rank)]

    def run(self, program, *options, mpi=False):
        """The steps' seconds on rank 0, each rank in its namespace and on a host of its own."""
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as open_files:
            log, errors, started = os.path.join(folder, "log.jsonl"), [], []
            for command, environment in self.by_mpi(folder) if mpi else self.by_tcp():
                errors.append(open_files.enter_context(tempfile.TemporaryFile("w+")))
                started.append(subprocess.Popen([*command, program, "-quiet", f"-log={log}", *options], env={**os.environ, **environment},
                                                stdout=subprocess.DEVNULL, stderr=errors[-1]))
            if any([process.wait() for process in started]):
                for file in errors:
                    file.seek(0)
                sys.exit("\n".join(filter(None, (file.read().strip() for file in errors))))
            return [row["step_ms"] / 1e3 for row in map(json.loads, open(log)) if "step_ms" in row]

    def by_tcp(self):
        """Each rank as torchrun would start it."""
        for rank in range(self.ranks):
            yield self.within(rank), {"RANK": str(rank), "WORLD_SIZE": str(self.ranks), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "10.77.0.1",
                                      "MASTER_PORT": "29500", "DSOPT_HOST": f"host{rank}", "DSOPT_SECRET": "of-the-benchmark"}

    def by_mpi(self, folder):
        """mpirun in the first namespace, which gets into the others where it would use ssh."""
        agent = os.path.join(folder, "agent")
        with open(agent, "w") as file:
            file.write(f"#!/bin/sh\nhost=$1; shift\nexec ip netns exec {self.bridge}r$((${{host##*.}} - 1)) unshare -u sh -c \"hostname host${{host##*.}}; $*\"\n")
        os.chmod(agent, 0o755)
        hosts = ",".join(f"10.77.0.{rank + 1}" for rank in range(self.ranks))
        yield [*self.within(0), "unshare", "-u", "sh", "-c", 'hostname host1; exec "$@"', "sh", "mpirun", "--allow-run-as-root", "-np", str(self.ranks), "--host", hosts,
               "--mca", "plm_rsh_agent", agent, "--mca", "btl", "tcp,self", "--mca", "pml", "ob1", "--mca", "oob_tcp_if_include", "eth0", "--mca", "btl_tcp_if_include", "eth0",
               "--bind-to", "none"], {"OMPI_MCA_mpi_yield_when_idle": "1"}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench-link", description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(SOURCE, "build"))
    parser.add_argument("--rate", default="1Gbit", help="of each port, as tc takes it")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--mpi", action="store_true", help="start ranks by mpirun")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3", help="file that is trained on")
    given = parser.parse_args()
    missing = [tool for tool in ("ip", "tc", *["mpirun"] * given.mpi) if not shutil.which(tool)]
    if missing:
        sys.exit(f"./dev bench-link needs {', '.join(missing)} (Debian: iproute2, openmpi-bin)")
    if os.geteuid():
        sys.exit("./dev bench-link makes network namespaces, which needs root")
    with tempfile.TemporaryDirectory() as folder:
        model, text = os.path.join(folder, "gpt.onnx"), os.path.join(folder, "text.npz")
        for script, *words in (["make_gpt.py", model, f"--layers={given.layers}", f"--width={given.width}", "--heads=4", "--tokens=32", "--rows=1"],
                               ["make_bytes.py", given.text, text, "--tokens=32", "--rows=1"]):
            call(sys.executable, os.path.join(SOURCE, "examples", script), *words)
        seconds = {}
        for name, words in WAYS.items():
            program = os.path.join(folder, name)
            call(os.path.join(given.build, "bin", "dsopt"), model, f"-data={text}", f"-dp={given.ranks}", "-micro-batches=1", "-threads=1", *words, "-o", program)
            with Link(given.ranks, given.rate) as link:
                steps = link.run(program, f"-data={text}", f"-steps={WARM_UP + MEASURED}", mpi=given.mpi)
            seconds[name] = middle(steps[WARM_UP:])
            print(f"{name:12} {1e3 * seconds[name]:8.1f} ms a step, {seconds['fp32'] / seconds[name]:5.2f} x fp32", flush=True)


if __name__ == "__main__":
    main()
