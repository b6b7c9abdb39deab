"""dsopt-report: one page without network for good, resumed, cut, non-finite and many logs;
a message and status 1 for what is no log.

usage: report.py DSOPT DSOPT-REPORT
"""
import html.parser
import json
import math
import os
import subprocess
import sys
import tempfile

from runs import check, execute, model

dsopt, report = sys.argv[1:]
path, data = model("gpt2-tiny")


class Page(html.parser.HTMLParser):
    """Checks that tags match and that nothing is fetched."""

    def __init__(self, text):
        super().__init__()
        self.open, self.captions, self.paths = [], [], []
        self.feed(text)
        check(not self.open, f"tags left open: {self.open}")

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        check(not {"src", "href", "xlink:href"} & values.keys(), f"<{tag}> refers to something: {values}")
        if tag == "path" and values.get("d"):
            self.paths.append(values["d"])
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        if tag == "path":
            self.paths.append(dict(attributes)["d"])

    def handle_endtag(self, tag):
        check(self.open and self.open.pop() == tag, f"</{tag}> does not match")

    def handle_data(self, text):
        if self.open and self.open[-1] == "figcaption":
            self.captions.append(text)


with tempfile.TemporaryDirectory() as folder:
    def file(name, text):
        with open(f"{folder}/{name}", "w") as out:
            out.write(text)
        return f"{folder}/{name}"

    def written(*logs):
        execute([report, *logs, "-o", f"{folder}/page.html"])
        text = open(f"{folder}/page.html").read()
        check("http" not in text and "url(" not in text and "import" not in text, "the page fetches something")
        page = Page(text)
        check(not any("nan" in d or "inf" in d for d in page.paths), "a path has a value that is no number")
        return text, page

    log = f"{folder}/run.jsonl"
    execute([dsopt, path, "-run", f"-data={data}", f"-eval-data={data}", "-eval-every=2", "-dp=2", "-pp=2", "-zero=3", "-micro-batches=2",
             "-steps=6", "-grad-clip=1", f"-log={log}", "-breakdown", "-quiet"])
    execute([report, log])
    check(os.path.exists(f"{folder}/run.html"), "the page has another name than the log")
    text, page = written(log)
    for caption in ("loss", "learning rate", "gradient norm", "tokens per second", "milliseconds of a step", "memory", "traffic",
                    "where a step's time goes"):
        check(caption in page.captions, f"there is no figure of {caption}: {page.captions}")
    hash = json.loads(open(log).read().splitlines()[-1])["end"]["weights_hash"]
    for word in ("evaluation", hash[:16], "dp 2, pp 2, zero 3", "model.onnx", "rank 3", "shared memory"):
        check(word in text, f"the page lacks '{word}'")
    good = open(log).read()
    text, _ = written(log, file("other.jsonl", good))
    check("2 runs" in text and ">other<" in text, "two runs are not named")

    def steps(count, first=0, loss=lambda step: math.exp(-step / 1000)):
        return "".join(json.dumps({"step": s, "loss": loss(s), "lr": 1e-3, "step_ms": 5.0}) + "\n" for s in range(first, count))

    head = json.dumps({"run": {"model": "<script>alert('x')</script>&", "steps": 9}}) + "\n"
    text, _ = written(file("cut.jsonl", good[: len(good) * 2 // 3]))
    check("incomplete" in text and "still running, or killed" in text, "a cut log is not noticed")
    text, _ = written(file("odd.jsonl", head + steps(9, loss=lambda s: ["nan", "inf", 2.5][s % 3])))
    check("loss is nan in step 0" in text and "<script>alert" not in text, "a loss that is no number, or a name with tags")
    text, _ = written(file("never.jsonl", head + steps(3, loss=lambda s: "nan")))
    check("no finite value" in text, "no finite loss")
    half = '{"step":0,"loss":3.0,"grad_norm":"nan","skipped":true}\n{"step":1,"loss":2.0,"grad_norm":1.0,"skipped":false}\n'
    text, _ = written(file("half.jsonl", head + half))
    check("1 of the logged steps overflowed in fp16" in text and "grad_norm is nan" not in text, "a skipped step")
    text, page = written(file("long.jsonl", head + steps(200000)))
    check(len(text) < 400000, f"a long log makes a page of {len(text)} bytes")
    text, _ = written(file("again.jsonl", head + steps(60) + head + steps(80, 50, lambda s: 7.0)))
    check("80 logged" in text and "class='mark'" in text, "a resumed log")
    text, _ = written(file("one.jsonl", head + steps(1)))
    text, _ = written(file("damaged.jsonl", head + steps(5) + "{oops}\n\x00\x01\n" + steps(9, 5)))
    check("2 lines could not be read, the first is line 7" in text, "damaged lines")
    text, _ = written(file("wild.jsonl", head + '{"step":1,"loss":1e308,"lr":-1e308,"grad_norm":{"a":1},"peak_bytes":"x"}\n[1]\n{"step":2,"loss":-1e308}\n'))
    text, _ = written(file("started.jsonl", head))
    check("no step is logged" in text, "a log without steps")

    for name, content, words in (("empty", "", "is empty"), ("text", "hello\n", "no line of a run"), ("binary", "\x00\x01\x02" * 99, "no line of a run"),
                                 ("other", '{"a":1}\n', "no line of a run")):
        done = subprocess.run([report, file(name, content)], capture_output=True, text=True)
        check(done.returncode == 1 and words in done.stderr and done.stderr.count("error: ") == 1, f"{name}: {done.returncode} {done.stderr}")
    for arguments in ([], [f"{folder}/absent.jsonl"], ["-x", log], [log, "-o", "/proc/none/page.html"], [log, "-o", log]):
        done = subprocess.run([report, *arguments], capture_output=True, text=True)
        check(done.returncode == 1 and done.stderr.count("error: ") == 1, f"{arguments}: {done.returncode} {done.stderr}")
    print("pages of 11 logs, 9 messages")
