"""dsopt-report -serve: a page on loopback follows logs that grow, are cut, copied away and resumed; what is no
request of its page is refused and ends nothing; SIGINT ends it.

usage: report_serve.py DSOPT-REPORT
"""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from runs import check

report = sys.argv[1]


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([report, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        check(line.startswith("serving http://127.0.0.1:"), f"{line}{'' if line else self.process.stderr.read()}")
        self.port = int(line.split(":")[2].split("/")[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def get(self, path, **headers):
        try:
            with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers), timeout=20) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def raw(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                return connection.recv(100)
            except (ConnectionError, BrokenPipeError):
                return b""

    def data(self, version=None):
        status, text, headers = self.get("/data" + (f"?version={version}" if version else ""))
        check(status == 200 and headers["Content-Type"] == "application/json", f"/data: {status} {text[:200]}")
        return json.loads(text)

    def until(self, fits, version=None):
        """The first data that fits; a log is not read at once."""
        for _ in range(200):
            data = self.data(version)
            if fits(data):
                return data
            time.sleep(0.05)
        sys.exit(f"FAILED: the served data does not come to what is expected: {str(data)[:500]}")

    def memory(self):
        return int(next(line for line in open(f"/proc/{self.process.pid}/status") if line.startswith("VmRSS")).split()[1])


with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/run.jsonl"

    def append(text, mode="a"):
        with open(path, mode) as log:
            log.write(text)

    def step(number):
        return json.dumps({"step": number, "loss": 4.0 / (number + 1)}) + "\n"

    head = json.dumps({"run": {"model": "m.onnx"}}) + "\n"
    append("", "w")
    with Server("-serve", path) as server:
        # A run that has not written anything yet.
        first = server.until(lambda data: "is empty" in data.get("error", ""))
        append(head + step(0))
        data = server.until(lambda data: "error" not in data)
        check("0:4" in data["page"] and not data["ended"] and data["version"] > first["version"], "the first step")
        status, text, headers = server.get("/")
        check(status == 200 and "<!doctype html>" in text and f"data-version='{data['version']}'" in text and "0:4" in text, "the page")
        check("connect-src 'self'" in headers["Content-Security-Policy"] and "fetch('data?version='" in text, "the page's script")
        check("page" not in server.data(data["version"]), "figures that have not changed are sent again")

        # It grows, also by half a line.
        line = step(1)
        append(line[:7])
        half = server.until(lambda now: "page" in now, data["version"])
        check("1:2" not in half["page"] and "incomplete" in half["page"], "half a line")
        append(line[7:])
        now = server.until(lambda now: "page" in now, half["version"])
        check("0:4,1:2<" in now["page"] and "incomplete" not in now["page"], "a step that was appended")

        # Copied away and truncated: what was there stays, with a message, until there is more.
        append("", "w")
        cut = server.until(lambda now: now.get("error"))
        check("0:4,1:2<" in cut["page"], "the figures of a log that was truncated")
        append(head + step(5) + json.dumps({"end": {"status": "ok"}}) + "\n")
        done = server.until(lambda now: now["ended"])
        check("error" not in done and "5:0.666667" in done["page"] and "0:4" not in done["page"], "a log that began anew")
        os.unlink(path)
        server.until(lambda now: "cannot read" in now.get("error", ""))
        append(head + step(7))
        server.until(lambda now: "7:0.5" in now.get("page", ""))

        # Names of other hosts that lead here, other methods, other paths.
        for wanted, (status, text, _) in ((403, server.get("/", Host="evil.example")), (403, server.get("/data", Host="127.0.0.1.evil.example:80")),
                                          (200, server.get("/", Host=f"localhost:{server.port}")), (404, server.get("/etc/passwd")), (404, server.get("/../run.jsonl"))):
            check(status == wanted and ("expected" in text or wanted == 200), f"{status} instead of {wanted}: {text[:100]}")
        check(b" 405 " in server.raw(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"), "another method")
        check(b" 403 " in server.raw(b"GET / HTTP/1.0\r\n\r\n"), "no host")
        before = server.memory()
        for data in (b"\x00\xff" * 500, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 100, b"GET /" + b"a" * (8 << 20), b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (1 << 20),
                     b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8388608\r\n\r\n" + b"a" * (8 << 20), b"GET /data?version=%00%ff& HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            server.raw(data)
        check(server.memory() < before + 4000, f"memory grew from {before} to {server.memory()} kB by what is no request")

        # Silent connections keep nobody waiting; more than it takes are hung up on, and it goes on once they are gone.
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(30)]
        check(server.get("/")[0] == 200, "silent connections keep others waiting")
        silent += [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
        for connection in silent:
            connection.close()
        server.until(lambda now: True)
        with socket.socket() as elsewhere:
            elsewhere.settimeout(2)
            check(elsewhere.connect_ex(("127.0.0.2", server.port)) != 0, "other addresses are served")

        taken = subprocess.run([report, f"-serve={server.port}", path], capture_output=True, text=True, timeout=20)
        check(taken.returncode == 1 and "Address already in use" in taken.stderr, f"a port that is taken: {taken.returncode} {taken.stderr}")
        server.process.send_signal(signal.SIGINT)
        check(server.process.wait(20) == 0 and server.process.stderr.read() == "", "SIGINT does not end it well")
        port = server.port
    with Server(f"--serve={port}", path, path) as server:
        check(server.port == port and "2 runs" in server.get("/")[1], "the port that is asked for, and several logs")
    for arguments in (["-serve", f"{folder}/absent.jsonl"], ["-serve=0", path], ["-serve=66000", path], ["-serve=x", path], ["-serve", path, "-o", f"{folder}/p.html"], ["-serve"]):
        done = subprocess.run([report, *arguments], capture_output=True, text=True, timeout=20)
        check(done.returncode == 1 and done.stderr.count("error: ") == 1, f"{arguments}: {done.returncode} {done.stderr}")
    print("a page that follows its log")
