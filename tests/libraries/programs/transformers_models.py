"""transformers: GPT-2, Llama, BERT and T5 from their configurations: generation, training, saved and loaded again"""

import tempfile

import torch
from report import report
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

torch.manual_seed(0)
tokens = dict(bos_token_id=0, eos_token_id=1, pad_token_id=1)
small = dict(vocab_size=60, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
x = torch.randint(2, 60, (2, 8))
mask = torch.ones_like(x)

gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=60, n_positions=64, n_embd=32, n_layer=2, n_head=4, **tokens)).eval()
report("greedy", gpt2.generate(x, attention_mask=mask, max_new_tokens=12, do_sample=False))
torch.manual_seed(1)
report("sampled", gpt2.generate(x, attention_mask=mask, max_new_tokens=12, do_sample=True, top_k=10, top_p=0.9))
beams = dict(num_beams=3, do_sample=False, repetition_penalty=1.2, no_repeat_ngram_size=2)
report("beams", gpt2.generate(x, attention_mask=mask, max_new_tokens=10, **beams))

llama = LlamaForCausalLM(LlamaConfig(**small, num_key_value_heads=2, **tokens))
optimizer = torch.optim.AdamW(llama.parameters(), 1e-2)
for _ in range(4):
    loss = llama(x, labels=x).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(llama.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    report("Llama", loss)
llama.eval()
report("logits", llama(x).logits)
folder = tempfile.mkdtemp()
llama.save_pretrained(folder)
report("loaded", LlamaForCausalLM.from_pretrained(folder)(x).logits)
half = LlamaForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, attn_implementation="eager")
report("bfloat16 is near", round(half(x).logits.float().abs().mean().item(), 2))
llama.gradient_checkpointing_enable()
llama.train()
llama(x, labels=x).loss.backward()
report("checkpointing", llama.model.embed_tokens.weight.grad)

bert = BertForSequenceClassification(BertConfig(**small, num_labels=3))
optimizer = torch.optim.AdamW(bert.parameters(), 1e-3)
mask[1, 5:] = 0
for _ in range(3):
    loss = bert(x, attention_mask=mask, labels=torch.tensor([0, 2])).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    report("BERT", loss)

sizes = dict(vocab_size=60, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0)
t5 = T5ForConditionalGeneration(T5Config(**sizes)).eval()
report("T5", t5(input_ids=x, labels=x).loss)
report("T5, greedy", t5.generate(x, max_new_tokens=8, do_sample=False))
