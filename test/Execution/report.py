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
    # Cards of ranks are as high as their neighbours: bars beside bars, lines beside lines.
    check("\n.even { grid-auto-rows: 1fr;" in text, "rows of cards are of any height")
    even = [Page(part).captions for part in text.split("<h2>Ranks</h2>")[1].split("<h2>")[0].split("<div class='grid even'>")[1:] for part in [part.rpartition("</div>")[0]]]
    check(even == [["memory", "traffic", "where a step's time goes"], ["memory over time"]], f"cards of ranks: {even}")
    hash = json.loads(open(log).read().splitlines()[-1])["end"]["weights_hash"]
    for word in ("evaluation", hash[:16], "dp 2, pp 2, zero 3", "model.onnx", "rank 3", "shared memory"):
        check(word in text, f"the page lacks '{word}'")
    good = open(log).read()
    check("memory over time" in page.captions and "gradient norms by parameter" not in page.captions, f"figures: {page.captions}")
    text, _ = written(log, file("other.jsonl", good))
    check("2 runs" in text and ">other<" in text and "no option differs" in text, "two runs are not named")

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

    def figure(text, caption):
        return next(f for f in text.split("<figure")[1:] if f"<figcaption>{caption}</figcaption>" in f)

    def points(figure, axis, kind, line=0):
        """Places of a line's curve of that class in the figure, from the top."""
        group = figure.split(f"<g class='{axis}'>")[1].split(f"<g data-line='{line}'")[1]
        path = group.split(f"<path class='{kind}' d='")[1].split("'")[0]
        return [tuple(map(float, point.split())) for point in path.replace("M", "L").split("L")[1:]]

    # A spike chooses the logarithmic axis; the switch is there either way, unless no value has a place on it.
    def logged(values, name="loss"):
        return written(file("values.jsonl", head + "".join(json.dumps({"step": i, name: v}) + "\n" for i, v in enumerate(values))))[0]

    box = "<input type='checkbox' class='log'"
    check(box + " checked" in figure(logged([1.0] * 50 + [1000.0] + [1.0] * 50, "grad_norm"), "gradient norm"), "a spike does not choose its axis")
    check(box + "/>" in figure(logged([3.0, 2.0, 1.5, 1.2, 1.0, 0.9]), "loss"), "an ordinary curve has no switch, or is switched")
    check(box not in figure(logged([-1.0, -2.0, 0.0]), "loss"), "values without a logarithm have a switch")
    decades = figure(logged([1.0, 10.0, 100.0, 1000.0, 10000.0]), "loss")
    ys = [y for _, y in points(decades, "logarithmic", "c0 raw")]
    check(max(abs(a - b - (ys[0] - ys[1])) for a, b in zip(ys, ys[1:])) < 0.21, f"decades are not as far from each other: {ys}")
    mixed = figure(logged([1.0, -1.0, 2.0, 0.0, 3.0]), "loss")
    check(len(points(mixed, "logarithmic", "c0 raw")) == 3 and len(points(mixed, "linear", "c0 raw")) == 5, "values at or below 0")
    check("values at or below 0 have no place" in mixed and "values at or below 0" not in decades, "nothing says that values are left out")

    # Smoothed curves are means of all values, also of those that are not drawn; the raw one stays.
    for count in (400, 40000):
        waves = figure(logged([float(i % 2) for i in range(count)] + ["nan", 1.0]), "loss")
        raw, much = points(waves, "linear", "c0 raw"), points(waves, "linear", "c0 smooth s3")
        low, high = max(y for _, y in raw), min(y for _, y in raw)
        share = (much[-1][1] - low) / (high - low)
        check(0.48 < share < 0.53 and len(much) < 600 and len(raw) < 1200, f"of {count} values in turn 0 and 1 the mean is {share}")
    check(text.count("name='smooth'") == 4, "there are no choices of smoothing")

    # Norms by parameter: the largest are shown, the others chosen; of a long log a few steps.
    def norms(count, parameters):
        return "".join(json.dumps({"step": s, "loss": 1.0, "peak_bytes": [100 + s, 50],
                                   "grad_norms": {f"p{p}": p + 1.0 + s / count for p in range(parameters)}}) + "\n" for s in range(count))

    text, _ = written(file("norms.jsonl", head + norms(20, 9)))
    chart = figure(text, "gradient norms by parameter")
    shown, folded = chart.split("<details>")
    check([f">p{p}<" in shown for p in range(9)] == [False] * 3 + [True] * 6 and "3 more" in folded and folded.count("type='checkbox'") == 3, "which norms are shown")
    check("data-name='p8'" in chart and "19:9.95" in chart, "values under the pointer")
    check("0:100,1:101" in figure(text, "memory over time") and "data-name='rank 1'" in text, "memory over time")
    text, _ = written(file("norms.jsonl", head + norms(5000, 60)))
    chart = figure(text, "gradient norms by parameter")
    check("the largest 48 of 60 parameters; every 8th logged step" in chart and len(chart) < 500000, f"many norms: {len(chart)} bytes, {chart[-200:]}")
    check(">p59<" in chart and ">p11<" not in chart, "the largest norms")
    text, _ = written(file("norms.jsonl", head + norms(20, 2) + head + norms(5, 2)))
    check(figure(text, "gradient norms by parameter").count("19:") == 0, "norms of steps that an earlier run went to")

    # Of several runs a table has the last losses and what differs.
    def run(lr, dp, loss):
        line = {"command": f"dsopt-run p -data=d.npz -log=a{lr}.jsonl -lr={lr} -beta1=0.9", "layout": {"dp": dp, "pp": 1, "zero": 0}, "K": 8}
        return json.dumps({"run": line}) + "\n" + json.dumps({"step": 0, "loss": loss}) + "\n"

    text, _ = written(file("a.jsonl", run("1e-3", 2, 1.25)), file("b.jsonl", run("1e-2", 4, 1.5)))
    table = text.split("<table class='compared'>")[1].split("</table>")[0]
    for word in ("c0'></i>a<", "c1'></i>b<", "<td>1.25</td>", "<td>1.5</td>", ">lr<", "<td>1e-3</td>", "<td>1e-2</td>", ">dp<", "<td>2</td>", "<td>4</td>"):
        check(word in table, f"the table of runs lacks {word}: {table}")
    for word in (">K<", ">log<", ">beta1<", ">data<", ">pp<"):
        check(word not in table, f"the table of runs has {word}, which is the same or of no account")

    for name, content, words in (("empty", "", "is empty"), ("text", "hello\n", "no line of a run"), ("binary", "\x00\x01\x02" * 99, "no line of a run"),
                                 ("other", '{"a":1}\n', "no line of a run")):
        done = subprocess.run([report, file(name, content)], capture_output=True, text=True)
        check(done.returncode == 1 and words in done.stderr and done.stderr.count("error: ") == 1, f"{name}: {done.returncode} {done.stderr}")
    for arguments in ([], [f"{folder}/absent.jsonl"], ["-x", log], [log, "-o", "/proc/none/page.html"], [log, "-o", log]):
        done = subprocess.run([report, *arguments], capture_output=True, text=True)
        check(done.returncode == 1 and done.stderr.count("error: ") == 1, f"{arguments}: {done.returncode} {done.stderr}")
    print("pages of 22 logs, 9 messages")
