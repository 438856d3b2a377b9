// Million events a second of eep (npm) per window and function, one JSON line.
// Usage: node eep.js PATH_OF_EEP ITEMS SIZE
const eep = require(process.argv[2]);
const items = Number(process.argv[3]);
const size = Number(process.argv[4]);
const functions = { sum: eep.Stats.sum, max: eep.Stats.max, all: eep.Stats.all };
const rates = {};

function run(name, window) {
  for (let i = 0; i < items / 10; i++) window.enqueue(i % 100);
  const start = process.hrtime.bigint();
  for (let i = 0; i < items; i++) window.enqueue(i % 100);
  rates[name] = items / (Number(process.hrtime.bigint() - start) / 1e9) / 1e6;
}

for (const [name, fn] of Object.entries(functions)) {
  run(`tumbling ${name}`, eep.EventWorld.make().windows().tumbling(fn, size));
  const world = eep.EventWorld.make();
  const sliding = world.windows().sliding(fn, size);
  run(`sliding ${name}`, name === "sum" ? sliding : world.windows().ordered(sliding));
}
console.log(JSON.stringify(rates));
