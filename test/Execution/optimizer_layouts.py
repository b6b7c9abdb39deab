"""An optimizer of whole parameters on gpt2-tiny: one result in all layouts, in each computation; planned bytes are a run's."""
import json

from runs import MPIRUN, check, execute, model, train


def layouts(folder, *last):
    """`folder` is for what is offloaded, `last` are options of the last one."""
    return (["-dp=1"], ["-dp=2"], ["-dp=2", "-zero=1"], ["-dp=2", "-zero=2", "-pp=2"], ["-dp=2", "-zero=3", "-recompute=full", "-tile-products=16k"],
            ["-dp=4", "-zero=1", "-threads=2"], ["-dp=2", "-zero=3", "-offload-optimizer=cpu", "-offload-params=cpu"],
            ["-pp=2", "-offload-optimizer=cpu", "-offload-ratio=0.5"], ["-dp=2", "-zero=3", "-offload-optimizer=nvme", f"-nvme-path={folder}"],
            ["-dp=4", "-zero=3", *last])


class LaidOut:
    """Trains in a layout with options that all have."""

    def __init__(self, dsopt, *same):
        self.dsopt, self.same = dsopt, same

    def options_of(self, layout):
        dp = next((int(word[4:]) for word in layout if word.startswith("-dp=")), 1)
        return [*self.same, *layout, f"-micro-batches={4 // dp}", "-reduction-shards=4"]

    def __call__(self, layout, *options, **keywords):
        return train(self.dsopt, "gpt2-tiny", *self.options_of(layout), *options, **keywords)

    def check(self, layouts, *narrow):
        """`narrow`: options of the computation in bf16. Returns hash and losses by computation and layout."""
        hashes = {}
        for layout in layouts:
            for computation in (("-accumulate=local",), ("-accumulate=local", "-precision=bf16", "-grad-clip=0.5", *narrow), ("-accumulate=sharded", "-precision=fp16")):
                if "-precision=fp16" in computation and layout not in (layouts[0], layouts[3], layouts[-1]):
                    continue
                run = self(layout, "-steps=4", *computation)
                if computation == ("-accumulate=local",):
                    path, data = model("gpt2-tiny")
                    planned = json.loads(execute([self.dsopt, path, "-plan=json", f"-data={data}", *self.options_of(layout), *computation]).stdout)
                    for rank, entry in enumerate(planned["ranks"]):
                        check(run.steps[-1]["peak_bytes"][rank] == entry["memory"]["total"], f"{layout}: rank {rank} maps {run.steps[-1]['peak_bytes'][rank]} bytes, planned {entry['memory']}")
                        check(run.steps[-1]["sent_bytes"][rank] == sum(entry["traffic"].values()), f"{layout}: rank {rank} sends {run.steps[-1]['sent_bytes'][rank]} bytes, planned {entry['traffic']}")
                hashes.setdefault(computation, {})[tuple(layout)] = (run.hash, *run.loss_text)
        for computation, found in hashes.items():
            run = self(["-dp=2", "-zero=2"], "-steps=4", *computation, prefix=[*MPIRUN, "2"])
            found["mpirun"] = (run.hash, *run.loss_text)
        check(all(len(set(found.values())) == 1 for found in hashes.values()), f"{hashes}")
        return hashes
