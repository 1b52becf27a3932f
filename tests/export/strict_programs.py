"""Modules that `export(strict=True)` captures, each written once for both libraries: name -> (module, args, kwargs, dynamic_shapes)."""

import math

from .programs import module

PROGRAMS = {}


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def linear(T, forward, **members):
    """A module with two layers a and b, a buffer n, a constant k and a list `seen`."""
    members = dict(a=T.nn.Linear(4, 4), b=T.nn.Linear(4, 4), n=(T.zeros(()), True), k=T.ones(4), seen=[]) | members
    return module(T, forward, **members)


@program
def reads_what_it_needs(T):
    def forward(self, x, *, scale=2.0, flag=True):
        y = self.b(self.a(x).relu()) * scale + self.k
        if flag:
            y = y + 1
        return {"y": y, "n": x.shape[0]}

    return linear(T, forward), (T.ones(2, 4),), {"scale": 3.0}, None


@program
def order_of_reads(T):
    """Parameters stand in the order in which they are used, then buffers and constants as they come."""

    def forward(self, x):
        return self.bn((self.b(self.v * x) + self.n + self.k + self.inner.k) + self.a(x) * self.p)

    inner = module(T, lambda self, x: x, k=T.ones(4))
    members = dict(v=(T.ones(4), False), p=T.nn.Parameter(T.ones(4)), inner=inner, bn=T.nn.BatchNorm1d(4))
    return linear(T, forward, **members), (T.arange(8.0).reshape(2, 4),), {}, None


@program
def prints(T):
    def forward(self, x):
        print("a graph has no print")
        return self.a(x)

    return linear(T, forward), (T.ones(2, 4),), {}, None


@program
def unused_argument(T):
    def forward(self, x, y, unused=None):
        return self.a(x)

    return linear(T, forward), (T.ones(2, 4), T.zeros(2, 4)), {}, None


@program
def unused_parameter(T):
    def forward(self, x):
        weight = self.a.weight
        return x + 1 if weight.dim() == 2 else x

    return linear(T, forward), (T.ones(2, 4),), {}, None


@program
def returns_state(T):
    def forward(self, x):
        return x, self.a.weight, self.n, self.k, x + 1

    return linear(T, forward), (T.ones(2, 4),), {}, None


@program
def closure(T):
    def forward(self, x):
        def times_pi(z):
            return z * math.pi

        return times_pi(self.a(x)), x, 3, None

    return linear(T, forward), (T.ones(2, 4),), {}, None


@program
def literal_and_constant(T):
    def forward(self, x):
        return x + T.tensor([1.0, 2.0, 3.0, 4.0]) * self.k + self.n

    return linear(T, forward), (T.ones(2, 4),), {}, None


@program
def tied_by_the_second_name(T):
    def forward(self, x):
        return self.b(x)

    made = linear(T, forward)
    made.b.weight = made.a.weight
    return made, (T.ones(2, 4),), {}, None


@program
def constant_by_the_second_name(T):
    def forward(self, x):
        return x * self.l + self.k

    k = T.ones(4)
    return linear(T, forward, k=k, l=k), (T.ones(2, 4),), {}, None


@program
def buffer_in_place(T):
    def forward(self, x):
        self.n.add_(1)
        return self.a(x) * self.n

    return linear(T, forward), (T.ones(2, 4),), {}, None


@program
def assigned_buffer_is_lost(T):
    def forward(self, x):
        self.n = self.n + 1
        return self.a(x)

    return linear(T, forward), (T.ones(2, 4),), {}, None


@program
def augmented_buffer(T):
    def forward(self, x):
        self.n += 1
        return self.a(x)

    return linear(T, forward), (T.ones(2, 4),), {}, None


@program
def loops(T):
    def forward(self, x, n):
        for layer in self.layers:
            x = layer(x).relu()
        for i in range(n):
            x = x + i
        return [x * i for i in range(2)]

    return (
        linear(T, forward, layers=T.nn.ModuleList([T.nn.Linear(4, 4) for _ in range(2)])),
        (T.ones(2, 4), 3),
        {},
        None,
    )


@program
def python_objects(T):
    def forward(self, batch):
        found = {name: value * 2 for name, value in batch.items() if name != "mask"}
        found["sum"] = sum(found.values())
        return sorted(found), [found["sum"], (batch["mask"],)]

    return linear(T, forward), ({"x": T.ones(2), "mask": T.zeros(2), "y": T.ones(2)},), {}, None


@program
def several_ways_in(T):
    def forward(self, x, *xs, k=1, **more):
        return x + xs[0] * k + more["z"]

    return linear(T, forward), (T.ones(4), T.zeros(4)), {"z": T.ones(4) * 2}, None


@program
def is_compiling(T):
    def forward(self, x):
        return x + 1 if T.compiler.is_compiling() and T.compiler.is_exporting() else x - 1

    return linear(T, forward), (T.ones(4),), {}, None


@program
def autocast(T):
    def forward(self, x):
        return self.a(x).float() + 1

    return linear(T, forward), (T.ones(2, 4),), {}, None


@program
def exception_that_is_caught(T):
    def forward(self, x):
        try:
            x = self.missing(x)
        except AttributeError:
            x = x * 2
        return self.a(x)

    return linear(T, forward), (T.ones(2, 4),), {}, None


@program
def hooks(T):
    made = linear(T, lambda self, x: self.a(x))
    made.a.register_forward_hook(lambda m, args, out: out + 1)
    return made, (T.ones(2, 4),), {}, None


@program
def only_numbers(T):
    return linear(T, lambda self, x: (3, x.shape[0])), (T.ones(2, 4),), {}, None


@program
def resnet_block(T):
    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(y)) + self.down(x)).relu()

    def conv(stride=1, k=3, inputs=4):
        return T.nn.Conv2d(inputs, 4, k, stride, padding=k // 2, bias=False)

    down = T.nn.Sequential(conv(2, 1, 2), T.nn.BatchNorm2d(4))
    members = dict(conv1=conv(2, inputs=2), conv2=conv(), bn1=T.nn.BatchNorm2d(4), bn2=T.nn.BatchNorm2d(4), down=down)
    return module(T, forward, **members), (T.ones(2, 2, 6, 6),), {}, None


@program
def lstm_by_hand(T):
    def forward(self, xs, state=None):
        h = c = self.start if state is None else state
        outs = []
        for x in xs:
            h, c = self.cell(x, (h, c))
            outs.append(h)
        return T.stack(outs), (h, c)

    members = dict(cell=T.nn.LSTMCell(3, 4), start=(T.zeros(2, 4), False))
    return module(T, forward, **members), (T.ones(3, 2, 3),), {}, None


# ------------------------------------------------------------------------------------- sizes that may change


def attention(T):
    def forward(self, x):
        B, L, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, L, 2, C // 2).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-2, -1) * (1.0 / math.sqrt(k.size(-1)))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).contiguous().view(B, L, C))

    members = dict(qkv=T.nn.Linear(8, 24), out=T.nn.Linear(8, 8))
    return module(T, forward, **members)


@program
def gpt_block(T):
    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))

    mlp = T.nn.Sequential(T.nn.Linear(8, 16), T.nn.GELU(), T.nn.Linear(16, 8), T.nn.Dropout(0.0))
    members = dict(ln1=T.nn.LayerNorm(8), attn=attention(T), ln2=T.nn.LayerNorm(8), mlp=mlp)
    sizes = ({0: T.export.Dim("batch"), 1: T.export.Dim("length", max=16)},)
    return module(T, forward, **members), (T.ones(3, 5, 8),), {}, sizes


@program
def batch(T):
    def forward(self, x):
        return {"y": self.b(self.a(x).relu()), "n": x.shape[0]}

    return linear(T, forward), (T.ones(3, 4),), {}, {"x": {0: T.export.Dim("b", max=9)}}


@program
def sizes(T):
    def forward(self, x):
        B, C = self.a(x).size()
        y = x.view(B * 2, C // 2)
        return y.reshape(B, -1), T.arange(B) + B, T.zeros(B, 2), x[: B - 1], len(x)

    return linear(T, forward), (T.ones(3, 4),), {}, ({0: T.export.Dim("b", min=3)},)


@program
def two_with_one_size(T):
    b = T.export.Dim("b")
    return linear(T, lambda self, x, y: self.a(x + y)), (T.ones(3, 4), T.ones(3, 4)), {}, ({0: b}, {0: b})


@program
def equal_by_use(T):
    auto = T.export.Dim.AUTO
    return linear(T, lambda self, x, y: self.a(x + y)), (T.ones(3, 4), T.ones(3, 4)), {}, ({0: auto}, {0: auto})


@program
def falls_back(T):
    def forward(self, x):
        return self.a(x) if x.shape[0] == 3 else self.b(x)

    return linear(T, forward), (T.ones(3, 4),), {}, ({0: T.export.Dim.AUTO},)


@program
def branch_by_size(T):
    def forward(self, x):
        return self.a(x) if x.shape[0] > 2 else self.b(x)

    return linear(T, forward), (T.ones(5, 4),), {}, ({0: T.export.Dim.DYNAMIC},)


@program
def dropout_in_evaluation(T):
    net = T.nn.Sequential(T.nn.Linear(4, 4), T.nn.ReLU(), T.nn.Dropout()).eval()
    return net, (T.ones(3, 4),), {}, ({0: T.export.Dim("b")},)
