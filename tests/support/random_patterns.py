"""Random pattern queries over A and B (k string, v int), and events that let matches pile up."""

from tests.support.kernel_runs import START

ATTRIBUTES = ("k", "v")


def condition(dice, earlier):
    """A filter of an element: of its own event, of earlier ones, or both."""
    parts = []
    if dice.random() < 0.6:
        parts.append(f"v {dice.choice(['<', '>', '==', '>='])} {dice.randint(0, 4)}")
    for slot in dice.sample(earlier, min(len(earlier), dice.choice([0, 1, 1, 2]))):
        parts += dice.sample(
            [
                f"k == {slot}.k", f"v > {slot}.v", f"{slot}.v >= v", f"v < {slot}.v + 1",
                f"v == {slot}.v and k == {slot}.k", f"v != {slot}.v",
                f"v > {slot}.v - 2 and v < {slot}.v + 2", f"(v > {slot}.v or k == {slot}.k)",
                f"v * 2 > {slot}.v", f"{slot}.v is null",
            ],
            1,
        )  # fmt: skip
    dice.shuffle(parts)
    return f"[{' and '.join(parts)}]" if parts else ""


def element(dice, number, earlier):
    """The text of one element, and the slots that later ones may read."""
    slot, stream = f"e{number}", dice.choice("AB")
    one = f"{slot}={stream}{condition(dice, earlier)}"
    kind = dice.choice(["one", "one", "one", "count", "and", "or", "absent", "optional"])
    match kind:
        case "count":
            least = dice.randint(1, 3)
            most = dice.choice([str(least), str(least + 2), ""])
            return f"{one}<{least}:{most}>", [f"{slot}[{least - 1}]"]
        case "optional" if number > 1:
            return f"{one}<0:1>", []
        case "and" | "or":
            other = f"{slot}b"
            filters = condition(dice, earlier)
            text = f"({one} {kind} {other}={dice.choice('AB')}{filters})"
            return text, [slot] if kind == "and" else []
        case "absent" if number > 1:
            return f"not {stream}{condition(dice, earlier)} for {dice.randint(3, 30)} millisec", []
    return one, [slot]


def pattern(dice):
    """A query; what it selects shows which events its rows are made of."""
    earlier, texts, shown = [], [], []
    for number in range(1, dice.choice([2, 2, 3, 3, 4, 5]) + 1):
        text, slots = element(dice, number, earlier)
        texts.append(text)
        earlier += slots
        shown += slots
    group = dice.choice([1, 1, 1, 2, 0])
    head, tail = texts[:group], texts[group:]
    if texts[-1].endswith("<0:1>"):
        tail.append(f"e9=B{condition(dice, earlier)}")
        shown.append("e9")
    chain = [f"every ({' -> '.join(head)})"] if group > 1 else [f"every {t}" for t in head]
    within = f"within {dice.randint(5, 60)} millisec" if dice.random() < 0.6 else ""
    items = ", ".join(f"{s}.v as c{i}" for i, s in enumerate(shown)) or "'x' as c0"
    body = f"from {' -> '.join([*chain, *tail])} {within} select {items} insert into O;"
    if dice.random() < 0.25:
        return f"partition with (k of A, k of B) begin {body} end;"
    return body


def events(dice, count):
    """Mostly in order, some late, some at one moment; values are null now and then."""
    now, found = START, []
    for _ in range(count):
        now += dice.choice([0, 0, 1, 1, 2, 5, 20])
        ts = now - dice.choice([0] * 9 + [7])
        value = None if dice.random() < 0.05 else dice.randint(0, 5)
        key = None if dice.random() < 0.03 else dice.choice("xyz")
        found.append((dice.choice("AAB"), ts, key, value))
    return found
