"""Random functions that read and write a world of objects, and random changes of that world between their calls.

.venv/bin/python -m tests.dynamo.world_fuzz FIRST COUNT [record]     more of them than the suite runs
"""

import collections
import contextlib
import io
import random

import readtorch as rt
from tests.dynamo.fuzzing import main, text_that_differs


class Namespace:
    def __init__(s, **k):
        s.__dict__.update(k)


class Base:
    K = 2

    def m(self, x):
        return x + 1

    @property
    def p(self):
        return getattr(self, "_p", 3)


def world():

    class A(Base):
        J = 4

        def go(self, x):
            return self.m(x) * self.K

        def __len__(self):
            return 3

    class Mod(rt.nn.Module):
        def __init__(s):
            super().__init__()
            s.w = rt.nn.Parameter(rt.ones(2))
            s.register_buffer("b", rt.zeros(2))
            s.k = 2
            s.act = rt.nn.ReLU()
            s.cfg = {"s": 1}
            s.sub = rt.nn.ModuleList([rt.nn.Identity(), rt.nn.ReLU()])

        def forward(s, x):
            y = s.act(x * s.w + s.b) * s.k
            for l in s.sub:
                y = l(y) + s.cfg.get("s", 5)
            return y if s.training else -y

    w = Namespace()
    w.A = A
    w.a = A()
    w.a2 = A()
    w.mod = Mod()
    w.d = {"x": 1, "y": [1, 2, {"z": 3}], "t": rt.ones(2)}
    w.l = [1, 2.5, "s", None, rt.ones(2) * 2]
    w.s = {1, "q"}
    w.f = lambda x: x * 2
    w.fs = [w.f, lambda x: x - 1]
    w.n = Namespace(v=1, inner=Namespace(u=2))
    w.tup = (1, (2, "c"))
    w.od = collections.OrderedDict(a=1)
    w.dd = collections.defaultdict(int)
    w.dq = collections.deque([1, 2], maxlen=3)
    return w


NUM = [
    "w.a.K",
    "w.a.J",
    "w.a.p",
    "len(w.a)",
    "w.a2.K",
    "w.A.K",
    "w.d['x']",
    "w.d.get('q',7)",
    "len(w.d)",
    "w.d['y'][0]",
    "w.d['y'][-1]['z']",
    "len(w.d['y'])",
    "w.l[0]",
    "len(w.l)",
    "(w.l[1] if isinstance(w.l[1],float) else 9)",
    "(1 if w.l[3] is None else 2)",
    "(3 if 1 in w.s else 4)",
    "(3 if 'n' in w.s else 4)",
    "len(w.s)",
    "w.n.v",
    "w.n.inner.u",
    "getattr(w.n,'extra',6)",
    "(1 if hasattr(w.a,'_p') else 0)",
    "w.tup[0]",
    "len(w.tup)",
    "sum(v for v in w.od.values())",
    "(w.dd['k'])",
    "len(w.dd)",
    "sum(w.dq)",
    "(1 if w.a is w.a2 else 2)",
    "(1 if w.d['y'] is w.l else 2)",
    "w.mod.k",
    "w.mod.cfg.get('s',0)",
    "len(w.mod.sub)",
    "(1 if w.mod.training else 2)",
    "(5 if isinstance(w.a, w.A) else 6)",
    "w.d['t'].shape[0]",
    "int(w.d['t'].requires_grad)",
    "(2 if type(w.l[0]) is int else 3)",
    "len(w.l[2])",
    "(1 if w.f is w.fs[0] else 0)",
    "vars(w.n).get('v',0)",
    "w.mod.w.shape[0]",
    "(1 if 'x' in w.d else 0)",
    "next(iter(w.od.values()),0)",
    "max(w.dq,default=0)",
    "int(w.a.__class__ is w.A)",
    "len(list(w.mod.parameters()))",
    "len([k for k in w.d])",
]
TEN = [
    "w.a.go(x)",
    "w.mod(x)",
    "w.f(x)",
    "w.fs[-1](x)",
    "x*w.d['t'][:2].sum()",
    "w.l[-1].sum()*x",
    "x+w.mod.b",
    "w.mod.w*x",
    "sum(f(x) for f in w.fs)",
    "w.mod.sub[0](x)",
    "w.a2.m(x)",
    "w.mod.act(x)",
]
EFF = [
    "w.n.v=w.n.v+1",
    "w.d['x']=w.d['x']+1",
    "w.l.append(1)",
    "w.dd['k']+=1",
    "w.dq.append(w.dq[-1]+1 if w.dq else 1)",
    "w.d['y'].append(5)",
    "w.a._p=w.a.p+1",
    "w.n.extra=x.shape[0]",
    "w.od['b']=2",
    "w.d.pop('q',None)",
    "w.d['q']=3",
    "w.mod.b.add_(1)",
    "w.mod.k=w.mod.k+1",
    "w.s.add('n')",
    "w.l[0]=w.l[0]+1",
    "w.d['t']=w.d['t']+1",
    "w.l.pop(0) if len(w.l)>6 else None",
    "w.fs.reverse()",
    "print(w.n.v)",
    "w.n.inner.u*=2",
    "w.mod.cfg['s']=w.mod.cfg.get('s',0)+1",
    "del w.d['q']",
    "w.n.tmp=x.sum()",
]
MUT = [
    "w.A.K=r.randint(1,5)",
    "setattr(Base,'K',r.randint(1,5)) if False else None",
    "w.a.K=r.randint(1,5)",
    "w.a.__dict__.pop('K',None)",
    "w.A.m=(lambda k:(lambda self,x:x*k))(r.randint(1,4))",
    "w.__dict__['a2']=w.a if r.random()<.5 else w.A()",
    "w.d['x']=r.choice([1,2,True,1.0,3])",
    "w.d.pop('q',None)",
    "w.d['q']=r.randint(0,3)",
    "w.d['y']=[r.randint(0,3),{'z':r.randint(0,3)}]",
    "w.d['y']=w.l if r.random()<.3 else [1,{'z':2}]",
    "w.l[0]=r.choice([1,2,True])",
    "w.l[1]=r.choice([2.5,0.0,-0.0,3])",
    "w.l[3]=r.choice([None,0])",
    "w.l[2]=r.choice(['s','tt'])",
    "w.s.add('n')",
    "w.s.discard('n')",
    "w.s.discard(1) or w.s.add(True)",
    "w.n.v=r.randint(0,4)",
    "w.n.__dict__.pop('extra',None)",
    "w.tup=r.choice([(1,(2,'c')),(2,),(True,3)])",
    "w.od.clear()",
    "w.od.update(a=r.randint(1,3),c=1)",
    "w.od.move_to_end('a') if 'a' in w.od else None",
    "w.dd.clear()",
    "w.dq.clear()",
    "w.dq.extend([4,5])",
    "w.f=r.choice(w.fs)",
    "w.fs.append(lambda x:x*3)",
    "w.fs[0]=w.f",
    "w.mod.train(r.random()<.5)",
    "w.mod.k=r.randint(1,4)",
    "w.mod.cfg={'s':r.randint(0,3)}",
    "w.mod.cfg.clear()",
    "w.mod.act=r.choice([rt.nn.ReLU(),rt.nn.Tanh(),rt.nn.Identity()])",
    "w.mod.sub.append(rt.nn.ReLU()) if len(w.mod.sub)<4 else None",
    "w.mod.w=rt.nn.Parameter(rt.ones(2)*r.randint(1,3))",
    "w.mod.b.mul_(0)",
    "w.mod.w.requires_grad_(r.random()<.5)",
    "w.d['t']=r.choice([rt.ones(2),rt.ones(3),rt.ones(2,requires_grad=True),rt.ones(2,dtype=rt.float64),w.mod.b])",
    "w.A.__len__=(lambda k:(lambda self:k))(r.randint(0,3))",
    "w.A.J=r.randint(1,3)",
    "w.a.__class__=r.choice([w.A,type('C',(w.A,),{'K':9})])",
    "setattr(w.A,'p',property((lambda k:(lambda self:k))(r.randint(1,4))))",
    "w.a._p=r.randint(1,4)",
    "w.handle=w.mod.register_forward_hook((lambda k:(lambda m,a,o:o*k))(r.randint(1,3))) if not hasattr(w,'handle') else (w.handle.remove(), w.__dict__.pop('handle'))",
    "w.mod.forward=(lambda x:x*0+1) if 'forward' not in w.mod.__dict__ else None",
    "w.mod.__dict__.pop('forward',None)",
    "rt.set_grad_enabled(r.random()<.6)",
    "w.f.__defaults__",
    "globals().__setitem__('G',r.randint(1,3))",
    "w.n.inner=Namespace(u=r.randint(1,3)) if r.random()<.5 else w.n",
    "w.mod.sub[0]=r.choice([rt.nn.Identity(),rt.nn.Sigmoid()])",
]
G = 1


def source(r):
    lines = ["def f(x, w):", "    y = x"]
    for _ in range(r.randint(2, 6)):
        k = r.random()
        if k < 0.35:
            lines.append(f"    y = y * 0.5 + {r.choice(TEN)}")
        elif k < 0.65:
            lines.append(f"    y = y + {r.choice(NUM)}")
        elif k < 0.8:
            lines.append(f"    if {r.choice(NUM)} > {r.choice(NUM)}: y = y + {r.choice(NUM)}")
        else:
            lines.append("    " + r.choice(EFF))
    lines.append(f"    return y, {r.choice(NUM)}, G")
    return "\n".join(lines)


def show(v):
    if isinstance(v, rt.Tensor):
        return (str(v.dtype), tuple(v.shape), v.requires_grad, [round(t, 4) for t in v.detach().reshape(-1).tolist()])
    if isinstance(v, (tuple, list)):
        return [show(a) for a in v]
    return repr(v)


def play(src, seed, comp):
    global G
    G = 1
    r = random.Random(seed * 7 + 1)
    w = world()
    ns = globals()
    exec(src, ns)
    f = comp(ns["f"])
    out = []
    t = io.StringIO()
    rt.manual_seed(0)
    with contextlib.redirect_stdout(t):
        for call in range(8):
            try:
                res = f(rt.ones(2), w)
            except Exception as ex:
                res = type(ex).__name__
            if res.__class__ is str:
                out.append(res)
            else:
                out.append(show(res))
            try:
                out.append(
                    [
                        w.n.v,
                        len(w.l),
                        show(w.d["t"]),
                        list(w.d),
                        show(list(w.d.values())[0]),
                        list(w.dq),
                        dict(w.dd),
                        list(w.od.items()),
                        show(w.mod.b),
                        w.mod.k,
                        sorted(map(str, w.s)),
                        sorted(vars(w.n)),
                        rt.is_grad_enabled(),
                        w.mod.cfg,
                    ]
                )
            except Exception as ex:
                out.append(type(ex).__name__)
            for _ in range(r.choice([0, 1, 1, 2])):
                try:
                    st = r.choice(MUT)
                    exec(st, ns, {"w": w, "r": r})
                except Exception:
                    pass
    rt.set_grad_enabled(True)
    return (out, t.getvalue())


def differs(seed):
    """None if a function's results, prints and effects are the same compiled and as it is written; else its text."""
    return text_that_differs(source, play, seed)


if __name__ == "__main__":
    main(differs)
