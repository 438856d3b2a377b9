// The word in the corner of a page: "live" only while the connection is open and the node works.

const STATES = { open: "live", connecting: "connecting", waiting: "reconnecting", closed: "closed" };

export class Status {
  constructor(edge, element) {
    this.element = element;
    this.state = "connecting";
    this.reason = "";
    this.failing = []; // parts of the node, from $sys/health
    edge.on("state", (state, detail) => {
      this.state = state;
      this.reason = detail.reason ?? "";
      this.show();
    });
  }

  setHealth({ parts }) {
    this.failing = Object.entries(parts).filter(([, reason]) => reason !== "ok");
    this.show();
  }

  show() {
    const broken = this.state === "open" && this.failing.length > 0;
    const state = broken ? "failing" : this.state;
    this.element.textContent = broken
      ? `not live: ${this.failing.map(([part]) => part).join(", ")}` : STATES[state];
    this.element.dataset.state = state;
    this.element.title = broken
      ? this.failing.map(([part, reason]) => `${part}: ${reason}`).join("\n") : this.reason;
    document.body.dataset.state = state;
  }
}
