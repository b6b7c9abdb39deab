"""Writes the small tokenizers of this folder and what the libraries that they come from make of lines: with the Python of
test/text-requirements.txt.

usage: make_fixtures.py
"""
import io
import json
import pathlib

import sentencepiece
import tiktoken
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
CORPUS = ["the cat sat on the mat, and the dog sat on the log", "she sells sea shells by the sea shore; it's true", "Größe, Straße und Übermut: 123 4567", "кот и пёс сидели на полу", "日本語 と 中文 字"] * 4
LINES = ["", "the cat", " The  dogs, sat!", "it's\n\n  true\t42", "Straße кот", "日本 and e\u0301 \u00a0x", "👍🏽 [MASK] <s>sea</s>", "a" * 50]


def main():
    expected = {}

    def keep(name, encode, decode, special):
        ids = [encode(line) for line in LINES]
        expected[name] = {"special": special, "ids": ids, "texts": [decode(one) for one in ids]}

    def save(name, tokenizer, trainer):
        tokenizer.train_from_iterator(CORPUS, trainer)
        tokenizer.save(str(HERE / name), pretty=False)
        keep(name, lambda line: tokenizer.encode(line).ids, lambda ids: tokenizer.decode(ids, skip_special_tokens=False), "add")

    quiet = {"show_progress": False}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    save("bytes.json", tokenizer, trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<s>", "</s>"], **quiet))
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    save("words.json", tokenizer, trainers.WordPieceTrainer(vocab_size=120, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[MASK]"], **quiet))
    for name, options in (("unigram.model", {"model_type": "unigram", "vocab_size": 90}), ("merges.model", {"model_type": "bpe", "vocab_size": 360, "byte_fallback": True})):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, minloglevel=3, hard_vocab_limit=False, normalization_rule_name="identity", **options)
        (HERE / name).write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_file=str(HERE / name))
        keep(name, processor.encode, processor.decode, "ignore")
    # The byte strings of the first, by rank.
    vocabulary = json.loads((HERE / "bytes.json").read_text())["model"]["vocab"]
    letters = {letter: byte for byte, letter in enumerate(byte_letters())}
    ranks = {bytes(letters[c] for c in token): 0 for token in vocabulary if all(c in letters for c in token)}
    ranks = {token: rank for rank, token in enumerate(sorted(ranks, key=lambda token: (len(token) > 1, vocabulary["".join(byte_letters()[b] for b in token)])))}
    import base64

    (HERE / "cl100k_base.tiktoken").write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
    import tiktoken_ext.openai_public as public

    public.load_tiktoken_bpe = lambda *_args, **_named: ranks
    encoding = tiktoken.Encoding(**public.cl100k_base())
    keep("cl100k_base.tiktoken", encoding.encode_ordinary, encoding.decode, "ignore")
    (HERE / "expected.json").write_text(json.dumps({"lines": LINES, "tokenizers": expected}, ensure_ascii=False) + "\n")


def byte_letters():
    shown = [i for i in range(256) if 33 <= i <= 126 or 161 <= i <= 172 or i >= 174]
    letters = [chr(i) for i in range(256)]
    for place, byte in enumerate(i for i in range(256) if i not in shown):
        letters[byte] = chr(256 + place)
    return letters


if __name__ == "__main__":
    main()
