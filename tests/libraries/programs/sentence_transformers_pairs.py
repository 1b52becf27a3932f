"""sentence-transformers: a small BERT with pooling, encoded sentences, three losses, similarities"""

import os
import tempfile

import torch
from report import report
from sentence_transformers import SentenceTransformer, losses, util
from sentence_transformers.models import Normalize, Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizer

torch.manual_seed(0)
folder = tempfile.mkdtemp()
words = "[PAD] [UNK] [CLS] [SEP] [MASK] a cat dog sits runs on the mat in park".split()
with open(os.path.join(folder, "vocab.txt"), "w") as file:
    file.write("\n".join(words))
sizes = dict(vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
BertModel(BertConfig(**sizes)).save_pretrained(folder)
BertTokenizer(os.path.join(folder, "vocab.txt")).save_pretrained(folder)
bert = Transformer(folder, max_seq_length=16)
model = SentenceTransformer(modules=[bert, Pooling(32, "mean"), Normalize()], device="cpu")

sentences = ["a cat sits on the mat", "the dog runs in the park", "a cat runs"]
embeddings = model.encode(sentences, convert_to_tensor=True)
report("embeddings", embeddings)
report("similarities", model.similarity(embeddings, embeddings))
report("nearest", [hit["corpus_id"] for hit in util.semantic_search(embeddings[:1], embeddings, top_k=2)[0]])

model.train()
for module in model.modules():
    if isinstance(module, torch.nn.Dropout):
        module.p = 0.0
features = [model.tokenize(sentences[:2]), model.tokenize(sentences[1:])]
for kind, labels in (
    (losses.CosineSimilarityLoss, torch.tensor([0.9, 0.1])),
    (losses.MultipleNegativesRankingLoss, None),
    (losses.ContrastiveLoss, torch.tensor([1, 0])),
):
    model.zero_grad()
    loss = kind(model)(features, labels)
    loss.backward()
    report(kind.__name__, loss)
    report("gradient", sum(p.grad.norm() for p in model.parameters() if p.grad is not None))
