"""x-transformers: five decoders trained and sampled, an encoder and decoder"""

import torch
from report import report
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper, XTransformer

kinds = {
    "rotary": dict(rotary_pos_emb=True),
    "ALiBi": dict(alibi_pos_bias=True, attn_flash=True),
    "gated": dict(use_rmsnorm=True, ff_glu=True, attn_kv_heads=2),
    "relative": dict(rel_pos_bias=True, sandwich_norm=True),
    "macaron": dict(macaron=True, attn_qk_norm=True),
}
for name, options in kinds.items():
    torch.manual_seed(0)
    layers = Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, **options)
    model = AutoregressiveWrapper(TransformerWrapper(num_tokens=40, max_seq_len=32, attn_layers=layers))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    x = torch.randint(0, 40, (2, 17))
    for _ in range(3):
        loss = model(x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        report(name, loss)
    model.eval()
    report(f"{name}, greedy", model.generate(x[:, :4], 10, temperature=0.0))
    torch.manual_seed(1)
    report(f"{name}, sampled", model.generate(x[:, :4], 10))

torch.manual_seed(0)
sizes = {
    f"{side}_{key}": value
    for side in ("enc", "dec")
    for key, value in dict(num_tokens=20, depth=1, heads=2, max_seq_len=16).items()
}
model = XTransformer(dim=32, **sizes)
source, target = torch.randint(0, 20, (2, 8)), torch.randint(0, 20, (2, 8))
report("encoder and decoder", model(source, target, mask=torch.ones(2, 8).bool()))
