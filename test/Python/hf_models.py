"""Small models of the tests of dsopt.hf.Trainer."""
import torch
import transformers

length, vocabulary = 12, 40


def bert(**given):
    torch.manual_seed(1)
    return transformers.BertForSequenceClassification(transformers.BertConfig(**{
        "vocab_size": vocabulary, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "num_labels": 3,
        "max_position_embeddings": length, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, **given}))


class TwoLayers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = torch.nn.Linear(6, 16), torch.nn.Linear(16, 3)

    def hidden_and_logits(self, x):
        hidden = torch.tanh(self.first(x))
        return hidden, self.second(hidden)
