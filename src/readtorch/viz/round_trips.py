"""A chain of operations as a moving picture: values on their way forward, gradients on their way back.

The picture is HTML with a style of its own: it plays once, in some seconds, and can be played again. Whoever asked for reduced
motion, has no script, or prints sees its last moment, in which everything stands.
"""

from __future__ import annotations

import math
from html import escape

BEAT = 0.55  # seconds from one value to the next

STYLE = """
.rt-trip { margin: 1.2rem 0; max-width: 46rem; }
.rt-trip-stations { display: grid; grid-auto-flow: column; grid-template-rows: repeat(3, auto); grid-template-columns: auto;
  grid-auto-columns: 1fr; column-gap: .4rem;
  align-items: center; margin: 0; }
.rt-trip-stations > * { margin: 0; padding: .3rem .2rem; text-align: center; white-space: nowrap; }
.rt-trip-stations > .rt-trip-head { text-align: left; color: var(--pst-color-text-muted, inherit); font-size: .85rem; }
.rt-trip-name { font-family: var(--pst-font-family-monospace, monospace); font-weight: 700; }
.rt-trip-value { display: flex; gap: .4rem; align-items: center; justify-content: flex-end; font-family: var(--pst-font-family-monospace, monospace); }
.rt-trip-value b { flex: 1; border: 1.5px solid var(--rt-trip-line); border-radius: 6px; padding: .25rem .5rem; font-weight: 500; }
.rt-trip-forth { --rt-trip-line: #2f7fc1; }
.rt-trip-back { --rt-trip-line: #46905c; }
.rt-trip-nan { --rt-trip-line: #c4711b; }
.rt-trip-nan b { border-width: 3px; font-weight: 700; }
.rt-trip-value i { font-style: normal; color: var(--rt-trip-line); font-weight: 700; min-width: 1em; }
.rt-trip button { margin-top: .6rem; font: inherit; font-size: .88rem; color: inherit; background: none; border: 1px solid currentColor; border-radius: 6px; padding: .2rem .7rem; }
@media (scripting: none), print { .rt-trip button { display: none; } }
@media (prefers-reduced-motion: reduce) { .rt-trip button { display: none; } }
@media screen and (prefers-reduced-motion: no-preference) {
  .rt-trip-plays .rt-trip-value b { animation: rt-trip-come .45s both; animation-delay: calc(var(--rt-trip-beat) * 1s); }
  .rt-trip-plays .rt-trip-forth i { animation: rt-trip-right .45s both; animation-delay: calc(var(--rt-trip-beat) * 1s - .3s); }
  .rt-trip-plays .rt-trip-back i { animation: rt-trip-left .45s both; animation-delay: calc((var(--rt-trip-beat) + var(--rt-trip-step)) * 1s - .3s); }
}
@keyframes rt-trip-come { from { opacity: 0; transform: scale(.6); } 60% { opacity: 1; transform: scale(1.12); } }
@keyframes rt-trip-right { from { opacity: 0; transform: translate(-1.2rem); } }
@keyframes rt-trip-left { from { opacity: 0; transform: translate(1.2rem); } }
@keyframes rt-trip-down { from { opacity: 0; transform: translateY(-1.2rem) rotate(90deg); } to { transform: rotate(90deg); } }
@keyframes rt-trip-up { from { opacity: 0; transform: translateY(1.2rem) rotate(90deg); } to { transform: rotate(90deg); } }
@media (max-width: 40rem) {
  .rt-trip-stations { grid-auto-flow: row; grid-template: none; grid-template-columns: auto 1fr 1fr; row-gap: .2rem; }
  .rt-trip-value { flex-direction: column; gap: .1rem; }
  .rt-trip-value b { align-self: stretch; }
  .rt-trip-value i { transform: rotate(90deg); line-height: 1; }
  .rt-trip-plays .rt-trip-forth i { animation-name: rt-trip-down; }
  .rt-trip-plays .rt-trip-back i { animation-name: rt-trip-up; }
  .rt-trip-stations > .rt-trip-head { text-align: center; }
}
"""
AGAIN = (
    "const one = this.closest('.rt-trip'); one.classList.remove('rt-trip-plays'); void one.offsetWidth;"
    " one.classList.add('rt-trip-plays')"
)


class RoundTrip:
    """A picture that shows itself as the last value of a cell."""

    def __init__(self, stations: list[tuple[str, str, str]]):
        self.stations = stations

    def __repr__(self) -> str:
        return said(self.stations)

    def _repr_html_(self) -> str:
        last, cells = len(self.stations) - 1, []
        for place, (name, value, gradient) in enumerate(self.stations):
            cells.append(f'<span class="rt-trip-name">{escape(name)}</span>')
            cells.append(_cell("forth", value, place, "→" if place else ""))
            cells.append(_cell("back", gradient, 2 * last + 2 - place, "←" if place else ""))
        heads = "".join(f'<span class="rt-trip-head">{head}</span>' for head in ("", "forward", "backward"))
        return (
            f'<style>{STYLE}</style><figure class="rt-trip rt-trip-plays"><div class="rt-trip-stations" role="img"'
            f' aria-label="{escape(said(self.stations))}">{heads}{"".join(cells)}</div>'
            f'<button type="button" onclick="{AGAIN}">Play again</button></figure>'
        )


def _cell(way: str, value: str, beat: int, arrow: str) -> str:
    """A value with the arrow between it and its left neighbour's. It comes at its beat; on the way back the arrow leads on to
    the next."""
    kind = f"rt-trip-{way}" + (" rt-trip-nan" if "nan" in value else "")
    arrow = f"<i>{arrow}</i>" if arrow else ""
    beats = f"--rt-trip-beat: {beat * BEAT:.2f}; --rt-trip-step: {BEAT}"
    return f'<span class="rt-trip-value {kind}" style="{beats}">{arrow}<b>{escape(value)}</b></span>'


def said(stations: list[tuple[str, str, str]]) -> str:
    """The picture in words."""
    forth = ", ".join(f"{name} is {value}" for name, value, _ in stations)
    back = ", ".join(f"{name} gets {gradient}" for name, _, gradient in reversed(stations))
    return f"Forward: {forth}. Backward: {back}."


def shown(value) -> str:
    """A tensor's numbers: `[nan, 0.5]`"""
    numbers = value.tolist()
    if isinstance(numbers, list):
        return f"[{', '.join(map(_number, numbers))}]"
    return _number(numbers)


def _number(x: float) -> str:
    return str(x) if math.isnan(x) else f"{x:.4g}"


def round_trip(run) -> RoundTrip:
    """Run the chain, keep the gradient of each result, walk back from the last."""
    results = run()
    for result in results.values():
        result.retain_grad()
    *_, last = results.values()
    last.backward()
    return RoundTrip([(name, shown(result), shown(result.grad)) for name, result in results.items()])
