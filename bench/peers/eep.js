// Million events a second of eep (npm) per window and function, one JSON line.
// Windows that a clock closes are asked every SIZE events.
// Usage: node eep.js PATH_OF_EEP ITEMS SIZE
const eep = require(process.argv[2]);
const items = Number(process.argv[3]);
const size = Number(process.argv[4]);
const functions = { sum: eep.Stats.sum, max: eep.Stats.max, all: eep.Stats.all };
const rates = {};

function run(name, window, ticks) {
  let since = 0;
  const loop = (count) => {
    for (let i = 0; i < count; i++) {
      window.enqueue(i % 100);
      if (ticks && ++since === size) {
        window.tick();
        since = 0;
      }
    }
  };
  loop(items / 10);
  const start = process.hrtime.bigint();
  loop(items);
  rates[name] = items / (Number(process.hrtime.bigint() - start) / 1e9) / 1e6;
}

for (const [name, fn] of Object.entries(functions)) {
  run(`tumbling ${name}`, eep.EventWorld.make().windows().tumbling(fn, size));
  const world = eep.EventWorld.make();
  const sliding = world.windows().sliding(fn, size);
  run(`sliding ${name}`, name === "sum" ? sliding : world.windows().ordered(sliding));
  run(`periodic ${name}`, eep.EventWorld.make().windows().periodic(fn, 1), true);
  const clock = new eep.CountingClock();
  run(`monotonic ${name}`, eep.EventWorld.make().windows().monotonic(fn, clock), true);
}
console.log(JSON.stringify(rates));
