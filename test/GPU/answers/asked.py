"""What is asked, in order: that which has to be known first comes first. The first eight take six minutes at most."""
import dataclasses
import typing

import large
import others
import small


@dataclasses.dataclass
class Step:
    name: str
    limit: float  # seconds
    ask: typing.Callable  # of a Context; says the answer in a line, or why there is none
    programs: tuple  # of the package: those of these steps
    asks: str


STEPS = [
    Step("start", 30, small.start, (), "driver, GPUs and libraries, with versions"),
    Step("kernels", 80, small.kernels, ("kernels",), "one kernel of each kind against the host"),
    Step("mlp", 20, small.mlp, ("mlp",), "training steps of an MLP beside the host's"),
    Step("layouts", 60, small.layouts, ("layouts",), "one hash over layouts on one GPU"),
    Step("products", 50, large.products, ("large",), "products, and what ran against the plan's table"),
    Step("gpt2", 60, large.gpt2, ("gpt2",), "GPT-2's losses from a seed against the host's"),
    Step("graphs", 30, large.graphs, ("large",), "a step with and without CUDA graphs"),
    Step("memory", 30, large.memory, ("large",), "memory planned against memory taken"),
    Step("peers", 240, others.peers, ("large",), "losses and speed beside PyTorch eager and torch.compile"),
    Step("flash", 60, others.flash, ("large",), "attention beside PyTorch's flash attention"),
    Step("ncu", 180, others.ncu, ("large",), "bytes and shares of limits of the ten longest kernels"),
    Step("1.3b", 240, others.huge, ("huge",), "steps of a GPT with 1.3B parameters"),
]
