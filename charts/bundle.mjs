// Write the bundle of the report's charts and its licences into a folder: node bundle.mjs FOLDER

import {build} from "esbuild";
import {readFileSync, readdirSync, writeFileSync} from "node:fs";

const folder = process.argv[2];
const read = name => JSON.parse(readFileSync(name, "utf8"));
const names = Object.keys(read("package.json").dependencies);
const versions = names.map(name => `${name} ${read(`node_modules/${name}/package.json`).version}`);
const {metafile} = await build({
  entryPoints: ["entry.js"],
  outfile: `${folder}/vega.min.js`,
  banner: {js: `/* ${versions.join(", ")}: their licences are in licences.txt */`},
  bundle: true,
  minify: true,
  charset: "ascii",
  legalComments: "none",
  metafile: true,
});

const packages = new Set();
for (const {inputs} of Object.values(metafile.outputs))
  for (const [file, {bytesInOutput}] of Object.entries(inputs)) {
    const name = file.match(/^node_modules\/((@[^/]+\/)?[^/]+)\//)?.[1];
    if (name && bytesInOutput) packages.add(name);
  }
// Packages that share a text are named once before it
const holders = new Map();
for (const name of [...packages].sort()) {
  const {version, license} = read(`node_modules/${name}/package.json`);
  const file = readdirSync(`node_modules/${name}`).find(each => /^licen[cs]e/i.test(each));
  if (!file) throw new Error(`${name}: has no file with its licence`);
  const text = readFileSync(`node_modules/${name}/${file}`, "utf8").replaceAll("\r\n", "\n").trim();
  holders.set(text, [...(holders.get(text) ?? []), `${name} ${version} (${license})`]);
}
const parts = [...holders].map(([text, each]) => `${each.join("\n")}\n\n${text}\n`);
writeFileSync(`${folder}/licences.txt`, `The packages in vega.min.js and their licences\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`);
