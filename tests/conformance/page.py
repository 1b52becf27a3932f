"""The tables of the chapter "How close is it?", as Markdown, from the result file alone.

Needs neither torch nor readtorch: what a reader sees was measured when the file was written.
"""

import collections
import json
import pathlib

STATES = ("same", "differs", "absent")
KINDS = ("operators", "modules", "optimizers")
NOTES = {
    "strides": "the result is laid out otherwise in memory, with the same numbers",
    "wording": "an error of the same type says it in other words",
    "alias": "a second name of the operator is missing or does something else",
    "bases": "`isinstance` with a base class answers differently",
}


class Results:
    """The result file, by name and by state."""

    def __init__(self, path=pathlib.Path(__file__).with_name("results.json")):
        self.data = json.loads(pathlib.Path(path).read_text())

    def rows(self, kind, state=None, **wanted):
        """The rows of one kind, perhaps only those of one state or with certain entries."""
        wanted |= {"state": state} if state else {}
        return [row for row in self.data[kind] if all(row.get(key) == value for key, value in wanted.items())]

    def find(self, word):
        """Everything whose name contains `word`: a table."""
        found = [
            (kind[:-1], code(row["name"]), row["state"], row.get("samples", 0), reason(row) or "–")
            for kind in KINDS
            for row in self.data[kind]
            if word.lower() in row["name"].lower()
        ]
        return table(("Kind", "Name", "State", "Compared", "Why"), found)

    def about(self):
        """When and with what the file was made."""
        versions = ", ".join(f"{name} {version}" for name, version in self.data["versions"].items())
        samples = sum(row.get("samples", 0) for kind in KINDS for row in self.data[kind])
        return (
            f"Measured on {self.data['date']} with {versions} ({self.data['machine']}): "
            f"{samples:,} inputs, in the dtypes {', '.join(self.data['dtypes'])}."
        )

    def overview(self):
        counted = [(kind, collections.Counter(row["state"] for row in self.data[kind])) for kind in KINDS]
        return table(
            ("Kind", "All", *map(str.capitalize, STATES)),
            [(kind.capitalize(), n.total(), *(n[state] for state in STATES)) for kind, n in counted],
        )

    def by_group(self):
        """Operators: how many of each group are in which state."""
        rows = []
        for title, group in self.groups().items():
            n = collections.Counter(row["state"] for row in group)
            samples = sum(row.get("samples", 0) for row in group)
            rows.append((title, len(group), *(n[state] for state in STATES), f"{samples:,}"))
        return table(("Group", "All", *map(str.capitalize, STATES), "Inputs compared"), rows)

    def groups(self):
        """Title -> operators: the groups of the book's list first, then the others by their namespace."""
        listed, others = collections.defaultdict(list), collections.defaultdict(list)
        for row in self.data["operators"]:
            if row["group"]:
                listed[row["group"]].append(row)
            else:
                namespace = row["name"].removeprefix("torch.").rpartition(".")[0]
                named = namespace and not namespace.startswith("ops")
                others[f"others: {namespace}" if named else "others"].append(row)
        return listed | dict(sorted(others.items()))

    def names(self, state):
        """Operators of one state, a paragraph a group."""
        return self._paragraphs(lambda row: row["state"] == state)

    def differences(self, kind):
        """What is there and not the same: how many inputs show it, and the reason or what was found."""
        rows = [
            (code(row["name"]), f"{row['failed']} of {row['samples']}", reason(row))
            for row in self.rows(kind, "differs")
        ]
        return table(("Name", "Inputs that differ", "Why"), rows) if rows else "None."

    def left_out(self):
        """Operators that are absent for a reason, by reason."""
        reasons = collections.defaultdict(list)
        for row in self.rows("operators", "absent"):
            if row["why"]:
                reasons[row["why"]].append(code(row["name"]))
        return table(("Reason", "Operators"), [(why, ", ".join(names)) for why, names in reasons.items()])

    def not_yet(self):
        """Operators that are absent for no other reason than that nobody has written them."""
        return self._paragraphs(lambda row: row["state"] == "absent" and not row["why"])

    def _paragraphs(self, wanted):
        chosen = ((title, [code(row["name"]) for row in rows if wanted(row)]) for title, rows in self.groups().items())
        found = [f"**{title}** ({len(names)}): {', '.join(names)}" for title, names in chosen if names]
        return "\n\n".join(found) or "None."

    def modules(self):
        """Classes of torch.nn, by the source of their inputs."""
        found = []
        for title, listed in (("in PyTorch's list of module inputs", True), ("not in that list", False)):
            rows = self.rows("modules", in_module_db=listed)
            n = collections.Counter(row["state"] for row in rows)
            found.append((title, len(rows), *(n[state] for state in STATES)))
        return table(("Classes of `torch.nn`", "All", *map(str.capitalize, STATES)), found)

    def list_of(self, kind, state):
        return ", ".join(code(row["name"]) for row in self.rows(kind, state)) or "None"

    def optimizers(self):
        rows = [
            (code(row["name"]), row["state"], row.get("samples", 0), reason(row) or "–")
            for row in self.data["optimizers"]
        ]
        return table(("Optimizer", "State", "Settings and errors tried", "Why"), rows)

    def random(self):
        """Operators that draw numbers, compared bit for bit."""
        rows = [(code(row["name"]), row["state"], row.get("samples", 0)) for row in self.rows("operators", exact=True)]
        return table(("Operator", "State", "Inputs compared bit for bit"), rows)

    def notes(self):
        """What is looked at and does not count: how many operators and modules show it."""
        every = (row for kind in KINDS for row in self.data[kind])
        n = collections.Counter(note for row in every for note in row.get("notes", {}))
        return table(
            ("Note", "What it means", "Operators and modules"), [(note, text, n[note]) for note, text in NOTES.items()]
        )


def reason(row):
    """Why a row is not "same", in one cell of a table."""
    if row["state"] == "absent":
        return row["why"] or "not written yet"
    return "; ".join([*row.get("known", []), *row.get("failures", [])[:1]])


def code(name):
    return f"`{name}`"


def table(header, rows):
    """A Markdown table; numbers stand to the right."""
    rows = [[_cell(value) for value in row] for row in rows]
    numeric = [all(row[i].replace(",", "").isdigit() for row in rows) for i in range(len(header))]
    lines = [header, ["---:" if right else "---" for right in numeric], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value):
    """Markdown must not read what is quoted: an error may contain anything."""
    text = str(value)
    special = "|" if text.startswith("`") else "|*_<>[]$`"
    return "".join(f"\\{c}" if c in special else c for c in text)
