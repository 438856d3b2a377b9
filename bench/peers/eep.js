// Million events a second of processor time of eep (npm), the best round of each window and
// function, one JSON line.
// Windows that a clock closes are asked every SIZE events.
// Usage: node eep.js PATH_OF_EEP ITEMS SIZE ROUNDS
const eep = require(process.argv[2]);
const items = Number(process.argv[3]);
const size = Number(process.argv[4]);
const rounds = Number(process.argv[5]);
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
  rates[name] = 0;
  for (let round = 0; round < rounds; round++) {
    const start = process.cpuUsage();
    loop(items);
    const used = process.cpuUsage(start);
    rates[name] = Math.max(rates[name], items / (used.user + used.system));
  }
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
