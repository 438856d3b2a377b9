"""Failover as golden text. Commands:

nodes N checkpoint=E:O      N nodes in STANDBY, clock at 0
start n1                    a new node in INITIAL; its first tick boots it
win-lease n1 epoch=7        n1 won; every node that can hear learns of the epoch
sees n1 epoch=7             n1 learns who holds the lease
gone n1                     the lease says that the epoch of n1 is over
done n1 ORDER               the node of n1 has carried out an order
stop n1 / hand-over n1      for good / take part again after 1000 ms
die n1 / restart n1
deaf n1 / hears n1          n1 misses (gets again) what others do, and its renewals
write n1                    n1 appends to the log, which knows the highest epoch
tick MS                     time passes in steps of 100 ms; a holder that can hear is confirmed
roles                       who does what now
recover KIND checkpoint=E:O|none earliest=O head=E:O
declare KIND for CLASS      may a query of this class promise this recovery?
"""

import pytest
from tests.golden import scripts

from edgewise.errors import RecoveryError
from edgewise.event.position import Position
from edgewise.event.repeat_level import RepeatLevel
from edgewise.ha import election as el
from edgewise.ha.fsm import Role, RoleOrder
from edgewise.ha.recovery import Found, parse_recovery, plan_recovery, why_not

TICK_MS = 100


def position(text: str) -> Position:
    epoch, offset = text.split(":")
    return Position(int(epoch), int(offset))


class Scenario:
    def __init__(self):
        self.nodes: dict[str, el.Election] = {}
        self.deaf: set[str] = set()
        self.now_ms = 0
        self.log_epoch = 0
        self.lines: list[str] = []

    def run(self, command: str) -> str:
        self.lines = []
        verb, *words = command.split()
        named = dict(word.split("=") for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        getattr(self, "do_" + verb.replace("-", "_"))(*plain, **named)
        return "\n".join(self.lines)

    def do_nodes(self, count, checkpoint):
        self.checkpoint = position(checkpoint)
        self.nodes = {f"n{i + 1}": self.fresh() for i in range(int(count))}
        self.do_roles()

    def initial(self):
        return el.Election(el.ElectionConfig(attempt_ms=200, renew_ms=500, ttl_ms=2000))

    def fresh(self):
        node = self.initial()
        node.tick(self.now_ms)
        node.step(el.OrderDone(RoleOrder.BOOT, 0))
        node.step(el.OrderDone(RoleOrder.SYNC, 0))
        return node

    def do_start(self, name):
        self.nodes[name] = self.initial()
        self.do_roles()

    def do_roles(self):
        self.lines.append(", ".join(f"{n} {e.role.name}" for n, e in self.nodes.items()))

    def do_win_lease(self, name, epoch):
        won = el.LeaseWon(int(epoch), self.now_ms, self.checkpoint)
        others = [n for n in self.nodes if n != name and n not in self.deaf]
        for other in others:
            self.feed(other, el.LeaseSeen(int(epoch)))
        self.feed(name, won, say=True)
        self.log_epoch = max(self.log_epoch, self.nodes[name].epoch)

    def do_sees(self, name, epoch):
        self.feed(name, el.LeaseSeen(int(epoch)), say=True)

    def do_gone(self, name):
        self.feed(name, el.LeaseGone(self.nodes[name].epoch), say=True)

    def do_done(self, name, order):
        done = el.OrderDone(RoleOrder[order.upper()], self.nodes[name].epoch)
        self.feed(name, done, say=True)

    def do_stop(self, name):
        self.feed(name, el.StopRequest(), say=True)

    def do_hand_over(self, name):
        self.feed(name, el.StopRequest(rejoin_ms=1000), say=True)

    def do_die(self, name):
        before = self.nodes.pop(name)
        self.lines.append(f"{name} {before.role.name} -> gone")

    def do_restart(self, name):
        self.nodes[name] = self.fresh()
        self.do_roles()

    def do_deaf(self, name):
        self.deaf.add(name)

    def do_hears(self, name):
        self.deaf.discard(name)

    def do_write(self, name):
        node = self.nodes[name]
        if node.role is not Role.ACTIVE:
            self.lines.append(f"{name} does not write: it is {node.role.name}")
        elif node.epoch < self.log_epoch:
            self.lines.append(
                f"refused: epoch {node.epoch} is over, the log is at {self.log_epoch}"
            )
        else:
            self.lines.append(f"written under epoch {node.epoch}")

    def do_tick(self, ms):
        end_ms = self.now_ms + int(ms)
        while self.now_ms < end_ms:
            self.now_ms += TICK_MS
            for name, node in self.nodes.items():
                before = node.role
                self.show(name, before, node.tick(self.now_ms), say=False)

    def do_recover(self, kind, checkpoint, earliest, head):
        found = Found(
            earliest=int(earliest),
            head=position(head),
            checkpoint=None if checkpoint == "none" else position(checkpoint),
        )
        try:
            self.lines.append(str(plan_recovery(parse_recovery(kind), found)))
        except RecoveryError as error:
            self.lines.append(f"error: {error}")

    def do_declare(self, kind, _, repeat):
        self.lines.append(why_not(parse_recovery(kind), RepeatLevel[repeat.upper()]) or "yes")

    def feed(self, name, message, *, say=False):
        node = self.nodes[name]
        before = node.role
        self.show(name, before, node.step(message), say=say)

    def show(self, name, before, actions, *, say):
        """Renewals are answered here and not printed: they come all the time."""
        node = self.nodes[name]
        shown = [a for a in actions if not isinstance(a, el.Renew)]
        for action in actions:
            if isinstance(action, el.Renew) and name not in self.deaf:
                node.step(el.LeaseKept(action.epoch, action.asked_ms))
        change = f"{before.name} -> {node.role.name}" if node.role is not before else before.name
        if shown or node.role is not before or say:
            told = ", ".join(map(str, shown)) or "none"
            self.lines.append(f"{name} {change}, actions: {told}")


@pytest.mark.parametrize("path", scripts("ha"), ids=lambda path: path.stem)
def test_the_script_tells_what_happens(golden, path):
    golden(path, Scenario().run)
