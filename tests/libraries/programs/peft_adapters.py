"""peft: LoRA, DoRA, IA3, prompts and prefixes trained on GPT-2; LoRA saved, loaded and merged"""

import tempfile

import torch
from peft import IA3Config, LoraConfig, PeftModel, PrefixTuningConfig, PromptTuningConfig, get_peft_model
from report import report
from transformers import GPT2Config, GPT2LMHeadModel


def base():
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=60, n_positions=64, n_embd=32, n_layer=2, n_head=4))


x = torch.arange(16).view(2, 8)
task = dict(task_type="CAUSAL_LM")
configs = {
    "LoRA": LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn"], lora_dropout=0.1, **task),
    "DoRA": LoraConfig(r=4, use_dora=True, target_modules=["c_attn"], fan_in_fan_out=True),
    "IA3": IA3Config(target_modules=["c_attn", "mlp.c_proj"], feedforward_modules=["mlp.c_proj"]),
    "prompt": PromptTuningConfig(num_virtual_tokens=4, **task),
    "prefix": PrefixTuningConfig(num_virtual_tokens=3, **task),
}
for name, config in configs.items():
    model = get_peft_model(base(), config)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-2)
    for _ in range(3):
        loss = model(input_ids=x, labels=x).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        report(name, loss)
    if name == "LoRA":
        folder = tempfile.mkdtemp()
        model.save_pretrained(folder)
        loaded = PeftModel.from_pretrained(base(), folder).eval()
        report("loaded", loaded(input_ids=x).logits)
        report("merged", loaded.merge_and_unload()(input_ids=x).logits)
