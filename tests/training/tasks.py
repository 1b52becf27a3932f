"""What the networks of models.py learn: for each kind of task, a batch of random data, and the loss on it."""


def images(T, batch, channels=3, size=32, classes=10):
    return T.randn(batch, channels, size, size), T.randint(0, classes, (batch,))


def vectors(T, batch, inputs=784, classes=10):
    return T.randn(batch, inputs), T.randint(0, classes, (batch,))


def texts(T, batch, context=64, vocabulary=65):
    return (T.randint(0, vocabulary, (batch, context + 1)),)


def pictures_of_points(T, batch, inputs=784):
    return (T.rand(batch, inputs),)


def classification_loss(T, model, x, labels):
    return T.nn.functional.cross_entropy(model(x), labels)


def language_loss(T, model, tokens):
    """Every token from those before it."""
    logits = model(tokens[:, :-1])
    return T.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def vae_loss(T, model, x):
    """How badly x is reconstructed, and how far the code is from a standard normal one, a sample."""
    reconstruction, mean, log_variance = model(x)
    wrong = T.nn.functional.binary_cross_entropy(reconstruction, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
    return (wrong + divergence) / x.shape[0]
