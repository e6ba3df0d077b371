// Starts the page, and connects its parts.

import { Colours } from "./colour.js";
import { Curve } from "./curve.js";
import { Dataset } from "./dataset.js";
import { byId } from "./elements.js";
import { listenToKeys } from "./keyboard.js";
import { rowsText } from "./numbers.js";
import { readPayload } from "./payload.js";
import { Plot } from "./plot.js";
import { Search } from "./search.js";
import { Selection } from "./selection.js";
import { Slider } from "./slider.js";
import { Theme } from "./theme.js";
import { Tooltip } from "./tooltip.js";
import { listenToTouch } from "./touch.js";

async function start() {
  const source = byId("payload");
  const dataset = new Dataset(await readPayload(source.textContent));
  source.remove(); // the text is large
  const { maps } = dataset;
  const about = maps.length > 1 ? `${maps.length} maps` : maps[0].title;
  byId("size").textContent = [rowsText(dataset.n), about].filter(Boolean).join(" \u00b7 ");
  byId("version").textContent = dataset.version;

  const parts = {};
  const plot = new Plot(byId("map"), dataset, {
    onHover: (row) => parts.tooltip.show(row),
    onSelect: (rows) => parts.selection.set(rows, { fromPlot: true }),
  });
  if (!plot.supported)
    throw new Error(
      "This page needs WebGL with textures of floating-point numbers, which this browser does not offer.",
    );
  const theme = new Theme(() => parts.colours && applyTheme(parts));
  const colours = new Colours(dataset, plot, theme, {
    onFilter: () => parts.selection.set(plot.selected),
    onChange: () => {
      parts.tooltip?.show(parts.tooltip.row);
      parts.selection?.refresh();
    },
  });
  Object.assign(parts, { plot, theme, colours, tooltip: new Tooltip(dataset, plot, colours) });
  parts.selection = new Selection(dataset, plot, colours, parts.tooltip);
  parts.search = new Search(dataset, plot, (rows) => parts.selection.set(rows));
  parts.curve = new Curve(dataset, (map) => parts.slider.go(map));
  parts.slider = new Slider(dataset, (position, settled) => move(parts, position, settled));
  connect(parts);
  applyTheme(parts);
  await plot.draw();
  if (!plot.drawn) throw new Error("The first map could not be drawn. The console of the browser says why.");
  await plot.fit({ animated: false });
  byId("loading").remove();
  return { dataset, ...parts };
}

function applyTheme({ plot, theme, colours }) {
  plot.setTheme({ background: theme.colour("--stage"), accent: theme.colour("--accent") });
  colours.refresh();
  byId("theme").setAttribute("aria-pressed", String(theme.name === "dark"));
}

function move({ plot, curve, colours, selection, tooltip }, position, settled) {
  const before = plot.map;
  plot.unhover();
  tooltip.show(null);
  plot.moveTo(position, { animated: settled });
  curve.show(position);
  if (plot.map !== before || settled) {
    colours.mapChanged();
    selection.refresh();
  }
}

function connect({ plot, theme, search, selection, slider }) {
  const help = byId("help");
  const setLasso = (on) => {
    plot.setMode(on);
    byId("pan-mode").setAttribute("aria-pressed", String(!on));
    byId("lasso-mode").setAttribute("aria-pressed", String(on));
    byId("stage").classList.toggle("lasso", on);
  };
  const toggleLasso = () => setLasso(byId("lasso-mode").getAttribute("aria-pressed") !== "true");
  const clear = () => {
    search.clear();
    selection.set([]);
    document.activeElement?.blur();
  };
  const on = (id, action) => byId(id).addEventListener("click", action);
  on("pan-mode", () => setLasso(false));
  on("lasso-mode", () => setLasso(true));
  on("zoom-in", () => plot.zoom(1.5));
  on("zoom-out", () => plot.zoom(1 / 1.5));
  on("reset", () => plot.fit());
  on("theme", () => theme.toggle());
  on("help-button", () => help.showModal());
  on("close-help", () => help.close());
  help.addEventListener("click", (event) => event.target === help && help.close());
  for (const [id, property] of [
    ["point-size", "size"],
    ["opacity", "opacity"],
  ]) {
    byId(id).value = String(plot[property]);
    byId(id).addEventListener("input", (event) => plot.setLook({ [property]: Number(event.target.value) }));
  }
  listenToTouch(byId("map"));
  listenToKeys({
    slider,
    search,
    clear,
    reset: () => plot.fit(),
    theme,
    help: () => help.showModal(),
    lasso: toggleLasso,
  });
}

function fail(error) {
  byId("loading").remove();
  byId("failure").hidden = false;
  byId("failure-text").textContent = error.message;
  console.error(error);
  throw error;
}

// For tests and for scripts of users. Rows and maps are numbered from 0; every promise resolves when all is drawn.
//   ready           a promise that resolves when the first map is drawn
//   positions()     the positions of all rows in the view of the map, [[x, y], ...], between -1 and 1
//   setMap(i)       moves to a map
//   map()           the number of the current map
//   select(rows)    selects rows
//   selected()      the selected rows
//   visible()       the rows that are shown
//   hovered()       the row under the pointer, or null
//   screen(row)     where a row is on the screen, [x, y], in pixels of the window
//   colourBy(name)  colours the points by a column
//   colourOf(row)   the colour of a row
window.drsneExplorer = { ready: start().then(expose, fail) };

function expose({ dataset, plot, selection, slider, tooltip, colours }) {
  Object.assign(window.drsneExplorer, {
    positions: () => plot.points.map(([x, y]) => [x, y]),
    setMap: (i) => {
      slider.go(i);
      return plot.draw();
    },
    map: () => plot.map,
    select: (rows) => selection.set([...rows].sort((a, b) => a - b)),
    selected: () => [...selection.rows],
    visible: () => plot.visibleRows ?? Array.from({ length: dataset.n }, (_, row) => row),
    hovered: () => tooltip.row,
    screen: (row) => {
      const box = plot.canvas.getBoundingClientRect();
      const [x, y] = plot.screenPosition(row);
      return [box.left + x, box.top + y];
    },
    colourBy: (name) => colours.choose(dataset.columns.find((column) => column.name === name) ?? null),
    colourOf: (row) => colours.colourOf(row),
  });
}
