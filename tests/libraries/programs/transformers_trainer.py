"""transformers: Trainer with accumulation, warmup, evaluation and checkpoints after each epoch, predictions"""

import tempfile

import torch
from report import report
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)


class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.x = torch.randint(2, 60, (32, 8), generator=torch.Generator().manual_seed(0))
        self.y = self.x.sum(1) % 2

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"input_ids": self.x[i], "attention_mask": torch.ones(8, dtype=torch.long), "labels": self.y[i]}


small = dict(vocab_size=60, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
arguments = TrainingArguments(
    tempfile.mkdtemp(),
    num_train_epochs=2,
    per_device_train_batch_size=8,
    gradient_accumulation_steps=2,
    learning_rate=1e-3,
    warmup_steps=2,
    logging_steps=2,
    eval_strategy="epoch",
    save_strategy="epoch",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(
    BertForSequenceClassification(BertConfig(**small)),
    arguments,
    train_dataset=Data(),
    eval_dataset=Data(),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
for row in trainer.state.log_history:
    for key in ("loss", "grad_norm", "learning_rate", "eval_loss", "eval_accuracy", "train_loss"):
        if key in row:
            report(key, row[key])
report("predictions", torch.tensor(trainer.predict(Data()).predictions))
