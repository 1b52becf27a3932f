"""Programs whose operator calls are compared: PyTorch's dispatch mode and readtorch's must be told the same.

A program uses `torch`, `x` (2 x 3), `g` (2 x 3, requires grad), `s` (a scalar) and is run inside a mode that notes each call.
"""

ONE_CALL = """
x + 1
1 + x
g * 2.0
torch.add(x, x, alpha=2)
x.sum()
x.sum(0, keepdim=True)
g.exp()
g.exp().sum().backward()
torch.ones(2, 3)
torch.zeros_like(x)
torch.tensor([1.0, 2.0])
torch.as_tensor([1, 2])
torch.randn(2, 3, dtype=torch.float64)
torch.empty(2, device="meta")
torch.full((2,), 3.0)
torch.zeros(2, 3)
x.new_zeros(2)
torch.rand(3)
x.to(torch.float64)
x.double()
x.reshape(3, 2)
x.view(-1)
x[0, 1:, None]
x[0]
x[1:]
x[..., 0]
x[:, [0, 1]]
x[x > 0]
x.__setitem__(0, 1.0)
x.__setitem__((slice(None), 1), torch.ones(2))
x.__setitem__(x > 0, 1.0)
x.split(1)
x.chunk(2)
x.unbind()
torch.cat([x, x], 1)
torch.stack([x, x])
x[0, 0].item()
x.max(1)
x.max()
x.argmax()
torch.nn.functional.linear(x, torch.ones(4, 3))
torch.nn.functional.linear(x, torch.ones(4, 3), torch.ones(4))
g.detach()
g.data
x.clone().requires_grad_()
x.add_(1)
torch.add(x, x, out=torch.empty(2, 3))
bool((x > 0).any())
x.copy_(x)
x == x
x.uniform_()
x.T
x @ x.T
x @ x[0]
torch.einsum("ij,kj->ik", x, x)
x**2
2**x
1 - x
1 / x
x / 2
x // 2
x % 2
-x
x > 0
x != 1
(x > 0) & (x < 1)
x.softmax(-1)
x.mean()
x.mean(1)
x.var()
x.norm()
x.clamp(0, 1)
x.clamp(min=0)
torch.where(x > 0, x, x)
x.masked_fill(x > 0, 0.0)
x.gather(1, torch.zeros(2, 1, dtype=torch.int64))
x.transpose(0, 1).contiguous()
x.expand(4, 2, 3)
x.unsqueeze(0).squeeze(0)
x.flatten()
x.permute(1, 0)
x.repeat(2, 1)
x.flip(0)
x.cumsum(0)
x.sort()
x.topk(2)
x.abs().sqrt().log()
torch.nn.functional.relu(x)
torch.nn.functional.gelu(x)
torch.nn.functional.silu(x)
torch.nn.functional.dropout(x, 0.5)
torch.nn.functional.layer_norm(x, (3,))
torch.nn.functional.batch_norm(x, torch.zeros(3), torch.ones(3), training=True)
torch.nn.functional.cross_entropy(x, torch.tensor([0, 1]))
torch.nn.functional.mse_loss(x, x)
torch.nn.functional.binary_cross_entropy_with_logits(x, torch.rand(2, 3))
torch.nn.functional.log_softmax(x, 1)
torch.nn.functional.one_hot(torch.tensor([0, 1]), 3)
torch.nn.functional.embedding(torch.tensor([0, 1]), x)
torch.nn.functional.pad(x, (1, 1))
torch.nn.functional.normalize(x)
torch.nn.functional.cosine_similarity(x, x)
torch.nn.functional.conv1d(x[None], torch.ones(2, 2, 1))
torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(2, 1, 3, 3), torch.ones(2), padding=1)
torch.nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), 2)
torch.nn.functional.avg_pool2d(torch.ones(1, 1, 4, 4), 2)
torch.nn.functional.adaptive_avg_pool2d(torch.ones(1, 1, 4, 4), 1)
torch.nn.functional.interpolate(torch.ones(1, 1, 4, 4), scale_factor=2)
torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None])
torch.nn.functional.unfold(torch.ones(1, 1, 4, 4), 2)
torch._foreach_add([x, x], 1)
torch.arange(3)
torch.arange(1, 7, 2)
torch.linspace(0, 1, 3)
torch.eye(3)
torch.triu(x)
torch.outer(x[0], x[0])
torch.bmm(x[None], x.T[None])
torch.baddbmm(x[None], x[None], torch.ones(1, 3, 3))
torch.addmm(torch.ones(4), x, torch.ones(3, 4))
torch.logsumexp(x, 1)
torch.allclose(x, x)
torch.equal(x, x)
torch.nonzero(x)
torch.bernoulli(x.abs().clamp(0, 1))
torch.multinomial(x.abs(), 2)
torch.lerp(x, x, 0.5)
torch.maximum(x, x)
torch.index_select(x, 0, torch.tensor([1]))
x.index_add(0, torch.tensor([1]), x[:1])
x.scatter(1, torch.zeros(2, 1, dtype=torch.int64), 1.0)
""".strip().splitlines()

PROGRAMS = {
    "leaf grad twice": """
        g.exp().sum().backward()
        g.exp().sum().backward()
    """,
    "sum alone": "g.sum().backward()",
    "expand grad": "(g.sum(0) * 2).sum().backward()",
    "create_graph": """
        [first] = torch.autograd.grad((g * g).sum(), g, create_graph=True)
        first.sum().backward()
    """,
    "broadcast": "(g + torch.ones(3, requires_grad=True)).sum().backward()",
    "linear step": """
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    """,
    "momentum": """
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    """,
    "adam": """
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    """,
    "adamw": """
        optimizer = torch.optim.AdamW([g], lr=0.1)
        g.sum().backward()
        optimizer.step()
    """,
    "mlp cross entropy": """
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
        loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([0, 2]))
        loss.backward()
    """,
    "dropout": """
        y = torch.nn.functional.dropout(g, 0.5)
        y.sum().backward()
    """,
    "dropout eval": "torch.nn.Dropout().eval()(g).sum().backward()",
    "batch norm": """
        norm = torch.nn.BatchNorm1d(3)
        norm(g).sum().backward()
        norm.eval()
        norm(g).sum().backward()
    """,
    "layer norm": "torch.nn.LayerNorm(3)(g).sum().backward()",
    "group norm": "torch.nn.GroupNorm(1, 3)(g).sum().backward()",
    "rms norm": "torch.nn.RMSNorm(3)(g).sum().backward()",
    "conv": """
        conv = torch.nn.Conv2d(1, 2, 3, padding=1)
        conv(torch.ones(1, 1, 4, 4)).relu().sum().backward()
    """,
    "conv pool": """
        conv = torch.nn.Conv2d(1, 2, 3)
        y = torch.nn.functional.max_pool2d(conv(torch.ones(1, 1, 6, 6)), 2)
        torch.nn.functional.adaptive_avg_pool2d(y, 1).sum().backward()
    """,
    "embedding": """
        table = torch.nn.Embedding(4, 3)
        table(torch.tensor([1, 2])).sum().backward()
    """,
    "softmax": "(torch.softmax(g, -1) * x).sum().backward()",
    "log_softmax nll": "torch.nn.functional.nll_loss(torch.log_softmax(g, 1), torch.tensor([0, 1])).backward()",
    "sigmoid tanh": "(torch.sigmoid(g) * torch.tanh(g)).sum().backward()",
    "gelu": "torch.nn.functional.gelu(g).sum().backward()",
    "silu": "torch.nn.functional.silu(g).sum().backward()",
    "relu": "torch.relu(g).sum().backward()",
    "leaky relu": "torch.nn.functional.leaky_relu(g).sum().backward()",
    "softplus": "torch.nn.functional.softplus(g).sum().backward()",
    "elu": "torch.nn.functional.elu(g).sum().backward()",
    "matmul": "(g @ x.T).sum().backward()",
    "matmul batched": "(g.expand(2, 2, 3) @ x.T).sum().backward()",
    "bmm": "torch.bmm(g[None], x.T[None]).sum().backward()",
    "mse": "torch.nn.functional.mse_loss(g, x).backward()",
    "l1": "torch.nn.functional.l1_loss(g, x).backward()",
    "bce": "torch.nn.functional.binary_cross_entropy_with_logits(g, x.abs()).backward()",
    "smooth l1": "torch.nn.functional.smooth_l1_loss(g, x).backward()",
    "index": "g[0].sum().backward(); g[:, 1:].sum().backward()",
    "index tensor": "g[torch.tensor([0, 1])].sum().backward()",
    "cat": "torch.cat([g, g]).sum().backward()",
    "stack": "torch.stack([g, x]).sum().backward()",
    "mean var": "(g.mean() + g.var()).backward()",
    "std": "g.std().backward()",
    "norm": "g.norm().backward()",
    "max": "g.max().backward(); g.max(1).values.sum().backward()",
    "pow": "(g**2 + g**0.5).sum().backward()",
    "div": "(1 / g + g / 2).sum().backward()",
    "sub": "(1 - g - x).sum().backward()",
    "exp log": "g.abs().log().exp().sum().backward()",
    "sin cos": "(g.sin() * g.cos()).sum().backward()",
    "clamp": "g.clamp(0, 1).sum().backward()",
    "where": "torch.where(x > 0, g, x).sum().backward()",
    "masked_fill": "g.masked_fill(x > 0, 0.0).sum().backward()",
    "gather": "g.gather(1, torch.zeros(2, 1, dtype=torch.int64)).sum().backward()",
    "cumsum": "g.cumsum(0).sum().backward()",
    "transpose": "g.t().reshape(-1).sum().backward()",
    "view": "g.view(3, 2).permute(1, 0).sum().backward()",
    "expand": "g.expand(4, 2, 3).sum().backward()",
    "in place": """
        y = g * 2
        y.add_(1)
        y.mul_(x)
        y.sum().backward()
    """,
    "in place on a view": """
        y = g * 2
        y[0].mul_(3)
        y.sum().backward()
    """,
    "setitem": """
        y = g * 2
        y[0] = 1.0
        y.sum().backward()
    """,
    "attention": """
        layer = torch.nn.MultiheadAttention(4, 2, batch_first=True)
        q = torch.ones(1, 3, 4)
        layer(q, q, q, need_weights=False)[0].sum().backward()
    """,
    "sdpa": "torch.nn.functional.scaled_dot_product_attention(g[None], g[None], g[None]).sum().backward()",
    "lstm": """
        layer = torch.nn.LSTM(3, 2)
        layer(x[:, None])[0].sum().backward()
    """,
    "retain and hooks": """
        y = g * 2
        y.retain_grad()
        y.register_hook(lambda grad: grad * 3)
        y.sum().backward()
    """,
    "custom function": """
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.save_for_backward(a)
                return a * a
            @staticmethod
            def backward(ctx, grad):
                [a] = ctx.saved_tensors
                return 2 * a * grad
        Square.apply(g).sum().backward()
    """,
    "no grad": """
        with torch.no_grad():
            y = g * 2
            y.add_(g)
    """,
    "inference": """
        with torch.inference_mode():
            torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3))
    """,
    "clip": """
        g.exp().sum().backward()
        torch.nn.utils.clip_grad_norm_([g], 1.0)
    """,
    "checkpoint": """
        from torch.utils.checkpoint import checkpoint
        checkpoint(lambda a: a.sin().exp(), g, use_reentrant=False).sum().backward()
    """,
    "normal init": """
        layer = torch.nn.Linear(3, 4)
        torch.nn.init.xavier_uniform_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    """,
    "transformer layer": """
        layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        layer(torch.ones(1, 3, 4)).sum().backward()
    """,
}
