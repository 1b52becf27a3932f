"""Working a figure with the keyboard alone, whatever figure it is."""

# What Tab must reach: of a group of radio buttons only one. (It may reach more: the browser stops at what scrolls.)
STOPS = """figure => [...figure.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')].filter(one =>
    one.tabIndex >= 0 && !one.disabled && one.checkVisibility({visibilityProperty: true})
    && !(one.type === 'radio' && !one.checked && figure.querySelector(`input[name="${one.name}"]:checked`)))"""
LEFT_OUT = f"figure => ({STOPS})(figure).filter(one => !one.rtReached).map(one => one.outerHTML.slice(0, 120))"
MOST_STOPS = 200

# How the focused element looks, and how it looks without focus: both as text, to be compared.
LOOK = """() => {
    const look = one => { const s = getComputedStyle(one); return [s.outlineStyle, s.outlineWidth, s.outlineColor, s.boxShadow, s.stroke,
        s.strokeWidth, s.backgroundColor, s.borderColor, s.filter].join(); };
    const around = [document.activeElement, ...document.activeElement.querySelectorAll('*'), document.activeElement.parentElement];
    const focused = around.map(look).join(), one = document.activeElement;
    one.rtReached = true;
    one.blur();
    const plain = around.map(look).join();
    one.focus({preventScroll: true, focusVisible: true});
    return [focused, plain, one.outerHTML.slice(0, 120)];
}"""

KIND = """() => { const one = document.activeElement;
    return one.localName === 'input' ? one.type : one.localName; }"""
KEYS = {
    "range": ["ArrowRight", "ArrowLeft"],
    "select": ["ArrowDown", "ArrowUp"],
    "checkbox": ["Space"],
    "radio": ["ArrowRight"],
    "button": ["Enter"],
    "summary": ["Enter"],
    "number": ["ArrowUp"],
    "a": [],
}
ROVING = ["ArrowRight", "ArrowDown", "Home", "End"]

CONTENT = """figure => figure.innerHTML + [...figure.querySelectorAll('input, select')].map(one => one.value + one.checked).join()"""
INSIDE = "figure => figure.contains(document.activeElement)"


def enter(page, figure):
    """Focus on what stands just before the figure, then Tab."""
    page.evaluate(
        """figure => {
        const mark = Object.assign(document.createElement('span'), {tabIndex: 0});
        figure.before(mark);
        mark.focus();
    }""",
        figure,
    )
    page.keyboard.press("Tab")
    page.evaluate("figure => figure.previousSibling.remove()", figure)


def walk(page, figure):
    """Tab through the figure, its folds open: (what each stop looked like with and without focus, what was not reached)"""
    page.evaluate("figure => figure.querySelectorAll('details').forEach(one => { one.open = true; })", figure)
    enter(page, figure)
    looks = []
    while page.evaluate(INSIDE, figure) and len(looks) < MOST_STOPS:
        looks.append(page.evaluate(LOOK))
        page.keyboard.press("Tab")
    return looks, page.evaluate(LEFT_OUT, figure)


def work(page, figure):
    """Press at each stop what moves such a control: whether the figure answered."""
    enter(page, figure)
    while page.evaluate(INSIDE, figure):
        for key in KEYS.get(page.evaluate(KIND), ROVING):
            before = page.evaluate(CONTENT, figure)
            page.keyboard.press(key)
            if page.evaluate(CONTENT, figure) != before:
                return True
        page.keyboard.press("Tab")
    return False
