"""docs/explanation/recovery.md is drawn from the tables; `pytest --rewrite-golden` renews it."""

from pathlib import Path

from edgewise.event.repeat_level import RepeatLevel
from edgewise.ha.fsm import TRANSITIONS, Role
from edgewise.ha.recovery import STATEMENTS, Recovery, why_not
from edgewise.ha.recovery_matrix import DELIVERIES, list_kept

PAGE = Path(__file__).parent.parent.parent / "docs" / "explanation" / "recovery.md"


def test_the_picture_of_the_roles_is_up_to_date(generated_block):
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> INITIAL"]
    for role, row in TRANSITIONS.items():
        lines += [
            f"    {role.name} --> {to.role.name} : {signal.name}" for signal, to in row.items()
        ]
    lines += ["```", "", "| role | meaning |", "|---|---|"]
    lines += [f"| {role.name} | {role.value} |" for role in Role]
    signals = dict.fromkeys(signal for row in TRANSITIONS.values() for signal in row)
    lines += ["", "| signal | meaning |", "|---|---|"]
    lines += [f"| {signal.name} | {signal.value} |" for signal in signals]
    orders = dict.fromkeys(to.order for row in TRANSITIONS.values() for to in row.values())
    lines += ["", "| order | the node has to |", "|---|---|"]
    lines += [f"| {order.name} | {order.value} |" for order in orders if order is not None]
    generated_block(PAGE, "roles", "\n".join(lines))


def test_the_promises_are_up_to_date(generated_block):
    lines = ["| recovery | rows | before serving | costs |", "|---|---|---|---|"]
    lines += [
        f"| {kind.value} | {said.rows} | {said.before_serving} | {said.costs} |"
        for kind, said in STATEMENTS.items()
    ]
    generated_block(PAGE, "recovery", "\n".join(lines))


def test_the_classes_of_operators_are_up_to_date(generated_block):
    lines = ["| class | fed again | may promise |", "|---|---|---|"]
    for repeat in RepeatLevel:
        kinds = ", ".join(kind.value for kind in Recovery if not why_not(kind, repeat))
        lines.append(f"| {repeat.name.lower()} | {repeat.meaning} | {kinds} |")
    generated_block(PAGE, "classes", "\n".join(lines))


def test_the_matrix_of_queries_and_sinks_is_up_to_date(generated_block):
    lines = ["| query | " + " | ".join(f"{d} sink" for d in DELIVERIES) + " |"]
    lines.append("|---" * (1 + len(DELIVERIES)) + "|")
    for repeat in RepeatLevel:
        kept = [", ".join(k.value for k in list_kept(repeat, d)) for d in DELIVERIES]
        lines.append(f"| {repeat.name.lower()} | " + " | ".join(kept) + " |")
    lines += ["", "| delivery | of a sink | of a source |", "|---|---|---|"]
    lines += [
        f"| {name} | {d.sink_limit or 'each row once'} | {d.source_limit or 'each event once'} |"
        for name, d in DELIVERIES.items()
    ]
    generated_block(PAGE, "matrix", "\n".join(lines))
