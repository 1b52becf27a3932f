"""Random functions of tensors whose sizes, strides and ranks change from call to call, with what they ask of them.

.venv/bin/python -m tests.dynamo.shape_fuzz FIRST COUNT [record]     more of them than the suite runs
"""

import random

import readtorch as rt
from tests.dynamo.fuzzing import main, text_that_differs

OPS = [
    "x+1",
    "x*y",
    "x@w",
    "(x@w)@w.t()",
    "x.relu()",
    "x.sum(0)",
    "x.mean(-1,keepdim=True)*x",
    "x.t()@x",
    "rt.cat([x,y])",
    "x[1:]",
    "x[:-1]",
    "x[::2]",
    "x.view(-1)",
    "x.reshape(-1,1)",
    "x.unsqueeze(0)",
    "x.squeeze()",
    "x.flatten()",
    "x.softmax(0)",
    "x.cumsum(0)",
    "x.expand(2,*x.shape)",
    "x.repeat(2,1)",
    "x.split(2)[0]",
    "rt.stack([x,y]).sum(0)",
    "x/x.shape[0]",
    "x*len(x)",
    "x.view(x.shape[0],-1)",
    "x.view(len(x),-1,1)",
    "rt.zeros(x.shape[0],2)+1",
    "rt.arange(len(x))*1.0",
    "x.max(0)[0]",
    "x.topk(1,0).values",
    "x.sort(0)[0]",
    "x.contiguous()",
    "x.t().contiguous()",
    "x.clone().mul_(2)",
    "x.masked_fill(x>0.5,0.)",
    "rt.where(x>0.5,x,-x)",
    "x.norm()",
    "x.pow(2).sum().sqrt()*x",
    "x.transpose(0,-1)",
    "x.new_zeros(x.shape)+x",
    "rt.nn.functional.pad(x,(1,0))",
    "x.flip(0)",
    "x.roll(1,0)",
    "x.diff(dim=0)",
    "rt.nn.functional.layer_norm(x,x.shape[-1:])",
    "x.narrow(0,0,1)",
    "x.chunk(2)[-1]",
    "x.tril() if x.dim()==2 else x",
    "x.std(0)",
    "x.unbind()[0]",
    "x.sum_to_size(x.shape)",
    "x.detach()",
    "x.permute(*range(x.dim()-1,-1,-1))",
    "x.select(0,0)",
    "x.movedim(0,-1)",
]
COND = [
    "x.shape[0]>3",
    "x.dim()>1",
    "len(x)%2==0",
    "x.numel()>6",
    "x.size(-1)==2",
    "y.shape[0]==x.shape[0]",
    "x.is_contiguous()",
    "x.shape==y.shape",
    "x.ndim==2 and x.size(0)<5",
    "x.stride(0)>1",
]
OUT = [
    "x.shape",
    "len(x) if x.dim() else 0",
    "x.dim()",
    "tuple(x.size())",
    "x.numel()",
    "x.is_contiguous()",
    "x is x0",
    "x.shape[0]*2 if x.dim() else 1",
    "f'{x.shape}'",
    "[1]*x.shape[0] if x.dim() else []",
]


def source(r):
    L = ["def f(x,y,w):", "    x0=x"]
    for _ in range(r.randint(1, 5)):
        k = r.random()
        if k < 0.75:
            L.append(f"    x={r.choice(OPS)}")
        else:
            L.append(f"    if {r.choice(COND)}: x={r.choice(OPS)}")
    L.append(f"    return x,{r.choice(OUT)}")
    return "\n".join(L)


def show(v):
    if isinstance(v, rt.Tensor):
        return (
            str(v.dtype),
            tuple(v.shape),
            v.stride(),
            v.requires_grad,
            [round(t, 4) for t in v.detach().reshape(-1).tolist()],
        )
    if isinstance(v, tuple) and (not isinstance(v, rt.Size)):
        return [show(a) for a in v]
    return repr(v)


def play(s, seed, c):
    r = random.Random(seed)
    ns = {"rt": rt}
    exec(s, ns)
    f = c(ns["f"])
    out = []
    rt.manual_seed(seed)
    for i in range(8):
        n, m = (r.choice([2, 3, 4, 5, 6, 1]), r.choice([2, 2, 2, 3]))
        x = rt.rand(n, m)
        if r.random() < 0.2:
            x = rt.rand(m, n).t()
        if r.random() < 0.15:
            x = x[0] if r.random() < 0.5 else x.unsqueeze(0)
        if r.random() < 0.3:
            x.requires_grad_()
        y = x if r.random() < 0.1 else rt.rand(x.shape)
        w = rt.rand(m, 2)
        try:
            o = f(x, y, w)
            g = None
            if o[0].requires_grad:
                o[0].sum().backward()
                g = x.grad
            out.append((show(o), show(g) if g is not None else None))
        except Exception as ex:
            out.append(type(ex).__name__)
    return out


def differs(seed):
    """None if results and gradients are the same compiled and as it is written; else the function's text."""
    return text_that_differs(source, play, seed)


if __name__ == "__main__":
    main(differs)
