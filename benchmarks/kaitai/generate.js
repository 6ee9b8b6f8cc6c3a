// Writes the parser of each .ksy file named; needs kaitai-struct-compiler 0.11.0 and js-yaml, see ../README.md.
"use strict";
const fs = require("fs");
const path = require("path");
const yaml = require("js-yaml");
const compiler = require("kaitai-struct-compiler");

for (const description of process.argv.slice(2)) {
  const source = yaml.load(fs.readFileSync(description, "utf8"));
  compiler.compile("python", source, null, false).then((files) => {
    for (const [name, text] of Object.entries(files)) {
      // What the compiler writes has no types; it says so, and here why
      fs.writeFileSync(path.join(__dirname, name), text.replace("# type: ignore\n", "# type: ignore  # written without types\n"));
    }
  });
}
