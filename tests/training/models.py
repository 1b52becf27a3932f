"""Networks that people really train, each written once over `T`: the module `torch` or `readtorch`.

A function makes one freshly initialised network; its arguments are its sizes. `tasks.py` says what they learn.
"""


def mlp(T, inputs=784, hidden=256, classes=10):
    nn = T.nn
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, classes))


def small_cnn(T, classes=10):
    """For images of 1×28×28: convolutions and poolings in turn, nothing random."""
    nn = T.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 64),
        nn.ReLU(),
        nn.Linear(64, classes),
    )


def mnist_cnn(T, channels=32, hidden=128, classes=10):
    """For images of 1×28×28: two convolutions, one pooling, two linear layers."""
    nn = T.nn
    return nn.Sequential(
        nn.Conv2d(1, channels, 3),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(2 * channels * 12 * 12, hidden),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(hidden, classes),
    )


def resnet18(T, width=64, classes=10):
    """In its form for small images of 3×32×32: a 3×3 stem and no pooling before the four stages."""
    nn, F = T.nn, T.nn.functional

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.shortcut = nn.Identity()
            if stride != 1 or inputs != outputs:
                projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
                self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)))
            y = self.bn2(self.conv2(y))
            return F.relu(y + self.shortcut(x))

    def stage(inputs, outputs, stride):
        return nn.Sequential(Block(inputs, outputs, stride), Block(outputs, outputs, 1))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            first = nn.Conv2d(3, width, 3, 1, 1, bias=False)
            self.stem = nn.Sequential(first, nn.BatchNorm2d(width), nn.ReLU())
            self.layer1 = stage(width, width, 1)
            self.layer2 = stage(width, 2 * width, 2)
            self.layer3 = stage(2 * width, 4 * width, 2)
            self.layer4 = stage(4 * width, 8 * width, 2)
            self.fc = nn.Linear(8 * width, classes)

        def forward(self, x):
            x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
            return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))

    return ResNet()


def vgg(T, plan=(32, "pool", 64, "pool", 128, 128, "pool"), size=32, hidden=128, classes=10):
    """Convolutions one after another, as `plan` says, for images of 3×size×size; then two linear layers."""
    nn, layers, channels = T.nn, [], 3
    for step in plan:
        if step == "pool":
            layers.append(nn.MaxPool2d(2, 2))
            size //= 2
        else:
            layers += [nn.Conv2d(channels, step, 3, padding=1), nn.ReLU(inplace=True)]
            channels = step
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Linear(channels * size * size, hidden),
        nn.ReLU(inplace=True),
        nn.Dropout(),
        nn.Linear(hidden, classes),
    )


def mobilenet(T, width=32, plan=((2, 2), (1, 1), (2, 2), (1, 1)), classes=10):
    """Depthwise convolutions, one filter a channel, each followed by a 1×1 convolution that mixes the channels.

    `plan` says of each pair by what it multiplies the channels, and its stride.
    """
    nn = T.nn

    def convolution(inputs, outputs, size, stride=1, groups=1):
        padding = size // 2
        conv = nn.Conv2d(inputs, outputs, size, stride, padding, groups=groups, bias=False)
        return [conv, nn.BatchNorm2d(outputs), nn.ReLU6(inplace=True)]

    layers, channels = convolution(3, width, 3), width
    for factor, stride in plan:
        layers += convolution(channels, channels, 3, stride, groups=channels)
        layers += convolution(channels, factor * channels, 1)
        channels *= factor
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def lstm_language_model(T, vocabulary=100, inputs=64, hidden=128, layers=1, dropout=0.0):
    nn = T.nn

    class LanguageModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, inputs)
            self.lstm = nn.LSTM(inputs, hidden, layers, batch_first=True, dropout=dropout)
            self.head = nn.Linear(hidden, vocabulary)

        def forward(self, tokens):
            states, _ = self.lstm(self.embedding(tokens))
            return self.head(states)

    return LanguageModel()


def gpt(T, layers=4, d=128, heads=4, context=64, vocabulary=65, dropout=0.0):
    """Token and position embeddings, blocks of attention and MLP, one weight for the embedding and the head."""
    nn, F = T.nn, T.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(d, 3 * d)
            self.out = nn.Linear(d, d)

        def forward(self, x):
            n, length, _ = x.shape
            q, k, v = self.qkv(x).view(n, length, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(n, length, d))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(d)
            self.attention = Attention()
            self.norm2 = nn.LayerNorm(d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(dropout))

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, d)
            self.positions = nn.Embedding(context, d)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(d)
            self.head = nn.Linear(d, vocabulary, bias=False)
            self.apply(self.initialise)
            self.tokens.weight = self.head.weight

        @staticmethod
        def initialise(module):
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

        def forward(self, tokens):
            x = self.tokens(tokens) + self.positions(T.arange(tokens.shape[1], device=tokens.device))
            return self.head(self.norm(self.blocks(x)))

    return GPT()


def vae(T, inputs=784, hidden=400, latent=20):
    """Called with x in [0, 1], it answers (reconstruction, mean, logarithm of the variance)."""
    nn = T.nn

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU())
            self.mean = nn.Linear(hidden, latent)
            self.log_variance = nn.Linear(hidden, latent)
            self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, inputs), nn.Sigmoid())

        def forward(self, x):
            h = self.encoder(x)
            mean, log_variance = self.mean(h), self.log_variance(h)
            z = mean + T.randn_like(mean) * T.exp(0.5 * log_variance)
            return self.decoder(z), mean, log_variance

    return VAE()
