// A small live line: the last two minutes of one number, newest at the right.

const POINTS_MAX = 120;
const POINTS_MIN = 20; // until then the line grows in from the right

export class Spark {
  constructor(canvas, colour) {
    this.canvas = canvas;
    this.colour = colour;
    this.points = [];
  }

  push(value) {
    this.points.push(value);
    if (this.points.length > POINTS_MAX) this.points.shift();
    this.draw();
  }

  draw() {
    const { canvas, points } = this;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
      canvas.width = width * ratio;
      canvas.height = height * ratio;
    }
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    if (points.length < 2) return;
    const top = Math.max(...points) * 1.12 || 1;
    const span = Math.max(POINTS_MIN, points.length) - 1;
    const x = (i) => width - 4 - (points.length - 1 - i) * ((width - 4) / span);
    const y = (v) => height - 3 - (v / top) * (height - 8);
    c.beginPath();
    points.forEach((v, i) => (i ? c.lineTo(x(i), y(v)) : c.moveTo(x(i), y(v))));
    c.lineWidth = 1.6;
    c.lineJoin = "round";
    c.strokeStyle = this.colour;
    c.stroke();
    c.lineTo(x(points.length - 1), height);
    c.lineTo(x(0), height);
    const fill = c.createLinearGradient(0, 0, 0, height);
    fill.addColorStop(0, `${this.colour}2e`);
    fill.addColorStop(1, `${this.colour}00`);
    c.fillStyle = fill;
    c.fill();
    const last = points.length - 1;
    c.beginPath();
    c.arc(x(last), y(points[last]), 2.6, 0, 7);
    c.fillStyle = this.colour;
    c.fill();
  }
}
