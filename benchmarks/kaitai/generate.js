// Writes msmq_topology.py from msmq_topology.ksy; needs kaitai-struct-compiler 0.11.0 and js-yaml, see ../README.md.
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
