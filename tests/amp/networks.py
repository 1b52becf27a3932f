"""A small GPT and a small ResNet, for both libraries: `network(T) -> (module, function that returns the loss)`."""


def gpt(T, width=32, heads=4, length=16, words=50):
    nn, F = T.nn, T.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, steps, _ = x.shape
            parts = self.qkv(self.norm1(x)).view(batch, steps, 3, heads, width // heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, steps, width))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.word, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
            self.body = nn.Sequential(Block(), Block(), nn.LayerNorm(width), nn.Linear(width, words))

        def forward(self, x):
            return self.body(self.word(x) + self.place(T.arange(x.shape[1])))

    net, text = GPT(), T.randint(0, words, (8, length + 1))
    return net, lambda: F.cross_entropy(net(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def resnet(T):
    nn, F = T.nn, T.nn.functional

    def convolution(inputs, outputs, size, stride=1):
        return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.first = convolution(inputs, outputs, 3, stride)
            self.second = convolution(outputs, outputs, 3)
            self.shortcut = convolution(inputs, outputs, 1, stride) if stride > 1 else nn.Identity()

        def forward(self, x):
            return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))

    net = nn.Sequential(
        *(convolution(3, 8, 3), nn.ReLU(), Block(8, 8, 1), Block(8, 16, 2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)),
    )
    x, y = T.randn(16, 3, 16, 16), T.randint(0, 10, (16,))
    return net, lambda: F.cross_entropy(net(x), y)
