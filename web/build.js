// Builds src/drsne/explorer/vendor/ from the packages in package-lock.json: the bundle, its digest and the licences.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const vendor = join(here, "..", "src", "drsne", "explorer", "vendor");
const name = "regl-scatterplot.min.js";

const result = await build({
  stdin: { contents: 'export { default as createScatterplot } from "regl-scatterplot";', resolveDir: here },
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "drsneLibrary",
  target: "es2022",
  charset: "ascii",
  legalComments: "none", // LICENSES.txt has them
  write: false,
});
const bundle = result.outputFiles[0].text;
if (/<\/script|<!--/i.test(bundle)) throw new Error("the bundle cannot be put into an HTML page");

// regl-scatterplot comes with its dependencies already bundled, so the packages are found by their names.
const packages = new Set();
const visit = (each) => {
  if (packages.has(each)) return;
  packages.add(each);
  const about = JSON.parse(readFileSync(join(here, "node_modules", each, "package.json"), "utf8"));
  Object.keys(about.dependencies ?? {}).forEach(visit);
};
visit("regl-scatterplot");
const licences = [...packages].sort().map((each) => {
  const folder = join(here, "node_modules", each);
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file ? readFileSync(join(folder, file), "utf8").trim() : `License: ${about.license}`;
  return `${each} ${about.version}\n${"=".repeat(each.length + about.version.length + 1)}\n\n${text}\n`;
});
const head = `The file ${name} contains these packages.\n\n`;
const copied = readFileSync(join(here, "kdbush.txt"), "utf8"); // regl-scatterplot contains a copy of kdbush

writeFileSync(join(vendor, name), bundle);
writeFileSync(join(vendor, `${name}.sha256`), `${createHash("sha256").update(bundle).digest("hex")}  ${name}\n`);
writeFileSync(join(vendor, "LICENSES.txt"), head + [...licences, copied].join("\n"));
console.log(`${name}: ${bundle.length} bytes, from ${[...packages].sort().join(", ")}`);
