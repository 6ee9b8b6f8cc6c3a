// Writes msmq_topology.py from msmq_topology.ksy: `npm install kaitai-struct-compiler@0.11.0 js-yaml`, then `node generate.js`.
"use strict";
const fs = require("fs");
const path = require("path");
const yaml = require("js-yaml");
const compiler = require("kaitai-struct-compiler");

const source = yaml.load(fs.readFileSync(path.join(__dirname, "msmq_topology.ksy"), "utf8"));
compiler.compile("python", source, null, false).then((files) => {
  for (const [name, text] of Object.entries(files)) {
    fs.writeFileSync(path.join(__dirname, name), text);
  }
});
