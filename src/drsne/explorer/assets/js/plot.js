// Draws the points. One drawing is in progress at a time; whatever changes meanwhile is drawn next.

const SPAN = 32767.5; // half of the places of a map in one direction
const MORPH = 450; // milliseconds
const WHOLE = [-1.12, 1.12]; // the range of the view that shows all points
const CLOSEST = 0.3; // smallest range of the view after zooming to rows
const NORMAL = 1; // how a point is drawn: 0 faint, 1 normal, 2 found by a search
const FOUND = 2;
const CLICK = 4; // a click that moves by more pixels is a drag

export class Plot {
  constructor(canvas, dataset, { onHover, onSelect }) {
    this.canvas = canvas;
    this.dataset = dataset;
    this.position = dataset.start; // between two maps while the slider is dragged
    this.points = Array.from({ length: dataset.n }, () => [0, 0, 0, NORMAL]);
    this.selected = [];
    this.visibleRows = null; // null stands for all rows
    this.changed = { places: true, filter: false };
    this.animated = false;
    this.busy = false;
    this.waiting = [];
    this.touched = false; // whether the user has moved the view
    this.opacity = dataset.n > 20000 ? 0.65 : 0.85;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const box = canvas.parentElement.getBoundingClientRect();
    this.size = Math.min(7, Math.max(1.6, (0.4 * Math.min(box.width, box.height)) / Math.sqrt(dataset.n)));
    // The library fails if the window loses the focus during a lasso, so the lasso ends just before.
    window.addEventListener("blur", () => window.dispatchEvent(new MouseEvent("mouseup")));
    this.scatter = drsneLibrary.createScatterplot({
      canvas,
      width: box.width,
      height: box.height,
      colorBy: "valueA",
      opacityBy: "valueB",
      sizeBy: "valueB",
      pointSizeSelected: 1,
      pointOutlineWidth: 0,
      antiAliasing: 1,
      opacityInactiveScale: 0.22,
      lassoMinDelay: 4,
      lassoLineWidth: 2,
      deselectOnEscape: false,
      actionKeyMap: { lasso: "shift", merge: /mac/i.test(navigator.platform) ? "cmd" : "ctrl", remove: "alt" },
      pointOrder: shuffled(dataset.n), // otherwise, the last class of sorted data would hide the others
      ...this.encoding(),
    });
    this.scatter.subscribe("pointOver", (row) => onHover(row));
    this.scatter.subscribe("pointOut", () => onHover(null));
    this.scatter.subscribe("lassoStart", () => onHover(null));
    this.scatter.subscribe("select", ({ points }) => this.tell(points, onSelect));
    this.scatter.subscribe("deselect", () => this.tell([], onSelect));
    for (const event of ["wheel", "mousedown"]) canvas.addEventListener(event, () => (this.touched = true));
    this.ignoreClicksOfDrags(canvas);
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
  }

  // The library takes a drag that ends where it began, such as a closed lasso, for a click, which selects one point.
  ignoreClicksOfDrags(canvas) {
    let start = null;
    let dragged = false;
    const far = (event) => start && Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > CLICK;
    canvas.addEventListener("mousedown", (event) => {
      start = event;
      dragged = false;
    });
    canvas.addEventListener("mousemove", (event) => (dragged ||= far(event)));
    canvas.addEventListener("click", (event) => dragged && event.stopImmediatePropagation(), { capture: true });
  }

  get supported() {
    return this.scatter.isSupported;
  }

  // The map that the current position is nearest to.
  get map() {
    return Math.round(this.position);
  }

  tell(points, listener) {
    this.selected = Array.from(points).sort((a, b) => a - b);
    listener(this.selected);
  }

  encoding() {
    return { pointSize: [this.size, this.size, this.size + 3], opacity: [0.08, this.opacity, 1] };
  }

  setLook({ size = this.size, opacity = this.opacity }) {
    Object.assign(this, { size, opacity });
    this.scatter.set(this.encoding());
  }

  // Moves the points to a position between two maps; with an animation if it is a map.
  moveTo(position, { animated = false } = {}) {
    this.position = position;
    this.changed.places = true;
    this.animated = animated && !this.calm;
    return this.draw();
  }

  // Forgets which point is under the pointer, so that the next movement of the pointer says it again.
  unhover() {
    this.scatter.hover(-1, { preventEvent: true });
  }

  // Colours the points: codes[row] is an index into the colours.
  colour(codes, colours) {
    for (let row = 0; row < codes.length; row++) this.points[row][2] = codes[row];
    this.scatter.set({ pointColor: colours, pointColorActive: colours, pointColorHover: colours });
    return this.draw();
  }

  setTheme({ background, accent }) {
    this.scatter.set({ backgroundColor: background, lassoColor: accent });
  }

  // Makes all other points faint. An empty list shows all points normally.
  highlight(rows) {
    const base = rows.length ? 0 : NORMAL;
    for (const point of this.points) point[3] = base;
    for (const row of rows) this.points[row][3] = FOUND;
    return this.draw();
  }

  show(rows) {
    this.visibleRows = rows;
    this.changed.filter = true;
    if (rows) {
      const kept = new Set(rows);
      this.selected = this.selected.filter((row) => kept.has(row));
    }
    return this.draw();
  }

  select(rows) {
    this.selected = rows;
    if (rows.length) this.scatter.select(Array.from(rows), { preventEvent: true });
    else this.scatter.deselect({ preventEvent: true });
  }

  setMode(lasso) {
    this.scatter.set({ mouseMode: lasso ? "lasso" : "panZoom" });
  }

  // Resolves when everything that was asked for is drawn, or when drawing it has failed.
  draw() {
    const done = new Promise((resolve) => this.waiting.push(resolve));
    this.wanted = true;
    if (!this.busy) this.run();
    return done;
  }

  async run() {
    this.busy = true;
    while (this.wanted) {
      this.wanted = false;
      const waiting = this.waiting.splice(0);
      const { filter } = this.changed;
      try {
        await this.drawOnce();
      } catch (error) {
        console.warn("The map was not drawn. It is drawn again after the next change.", error);
        this.changed.places = true;
        this.changed.filter ||= filter;
      } finally {
        for (const resolve of waiting) resolve();
      }
    }
    this.busy = false;
  }

  async drawOnce() {
    const moving = this.changed.places;
    const between = !Number.isInteger(this.position);
    const options = { preventFilterReset: true, zDataType: "categorical", wDataType: "categorical" };
    if (moving) this.place();
    if (moving && this.animated && this.drawn) Object.assign(options, { transition: true, transitionDuration: MORPH });
    // Building the index of positions takes most of the time. A blend is not pointed at, and colours do not move.
    if (this.drawn && (between || !moving)) options.spatialIndex = this.scatter.get("spatialIndex");
    this.changed.places = false;
    this.animated = false;
    await this.scatter.draw(this.points, options);
    this.drawn = true;
    if (this.changed.filter) {
      this.changed.filter = false;
      const rows = this.visibleRows;
      await (rows
        ? this.scatter.filter(Array.from(rows), { preventEvent: true })
        : this.scatter.unfilter({ preventEvent: true }));
    }
  }

  place() {
    const before = Math.floor(this.position);
    const share = this.position - before;
    const from = this.dataset.maps[before];
    const to = this.dataset.maps[Math.min(before + 1, this.dataset.maps.length - 1)];
    for (let row = 0; row < this.points.length; row++) {
      const point = this.points[row];
      point[0] = (from.x[row] + (to.x[row] - from.x[row]) * share) / SPAN - 1;
      point[1] = (from.y[row] + (to.y[row] - from.y[row]) * share) / SPAN - 1;
    }
  }

  resize() {
    const { width, height } = this.canvas.parentElement.getBoundingClientRect();
    if (!width || !height) return;
    this.scatter.set({ width, height });
    if (!this.touched) this.fit({ animated: false });
  }

  fit({ animated = true, rows = null } = {}) {
    const transition = animated && !this.calm && !this.busy;
    this.touched = rows !== null;
    const [x, y] = rows ? [0, 1].map((i) => this.extent(rows, i)) : [WHOLE, WHOLE];
    const width = x[1] - x[0];
    const height = y[1] - y[0];
    return this.scatter.zoomToArea({ x: x[0], y: y[0], width, height }, { transition });
  }

  // The range of rows in one direction, with some room. A single row keeps its surroundings in view.
  extent(rows, direction) {
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (const row of rows) {
      low = Math.min(low, this.points[row][direction]);
      high = Math.max(high, this.points[row][direction]);
    }
    const size = Math.max(CLOSEST, 1.4 * (high - low));
    return [(low + high - size) / 2, (low + high + size) / 2];
  }

  zoom(factor) {
    this.touched = true;
    const { target, distance } = this.scatter.get("camera");
    return this.scatter.zoomToLocation([...target], distance[0] / factor, {
      transition: !this.calm && !this.busy,
      transitionDuration: 200,
    });
  }

  // The place of a row on the screen, relative to the canvas.
  screenPosition(row) {
    return this.scatter.getScreenPosition(row);
  }
}

// The rows in an order without a pattern, which is the same every time.
function shuffled(n) {
  const order = Array.from({ length: n }, (_, i) => i);
  let state = 1;
  for (let i = n - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 4294967296) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
