// A map without tiles: the rows of a sink as points, scaled so that all of them are seen.

const LATITUDES = ["latitude", "lat"];
const LONGITUDES = ["longitude", "lon", "lng", "long"];
const SPAN_MIN = 0.002; // degrees: about 200 m, so that one point does not fill the world

/** The names of the latitude and the longitude among numeric attributes, or none. */
export function findCoordinates(names) {
  const pick = (known) => names.find((name) => known.includes(name.toLowerCase()));
  const found = [pick(LATITUDES), pick(LONGITUDES)];
  return found.every(Boolean) ? found : [];
}

export class PointMap {
  constructor([latitude, longitude]) {
    Object.assign(this, { latitude, longitude });
    this.element = document.createElement("canvas");
    this.element.className = "map";
    this.element.setAttribute("role", "img");
  }

  paint(records) {
    const points = records
      .map(({ row, stale }) => ({ x: row[this.longitude], y: row[this.latitude], stale }))
      .filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y));
    this.element.setAttribute("aria-label", `map of ${points.length} rows`);
    const canvas = this.element;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const c = canvas.getContext("2d");
    c.scale(ratio, ratio);
    c.clearRect(0, 0, width, height);
    if (!points.length) return;
    const place = fit(points, width, height);
    for (const point of points) {
      const [x, y] = place(point);
      c.beginPath();
      c.arc(x, y, 4, 0, 7);
      c.fillStyle = point.stale ? "#66718a" : "#ffb86b";
      c.fill();
    }
  }
}

function fit(points, width, height) {
  const range = (values) => [Math.min(...values), Math.max(...values)];
  const [west, east] = range(points.map((p) => p.x));
  const [south, north] = range(points.map((p) => p.y));
  const narrow = Math.cos(((south + north) / 2) * (Math.PI / 180)) || 1;
  const scale = 0.9 * Math.min(
    width / Math.max(SPAN_MIN, (east - west) * narrow), height / Math.max(SPAN_MIN, north - south),
  );
  return ({ x, y }) => [
    width / 2 + (x - (west + east) / 2) * narrow * scale,
    height / 2 - (y - (south + north) / 2) * scale,
  ];
}
