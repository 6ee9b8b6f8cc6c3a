// Writes <name>.py from each <name>.ksy; needs kaitai-struct-compiler 0.11.0 and js-yaml, see ../README.md.
"use strict";
const fs = require("fs");
const path = require("path");
const yaml = require("js-yaml");
const compiler = require("kaitai-struct-compiler");

for (const format of fs.readdirSync(__dirname).filter((name) => name.endsWith(".ksy"))) {
  const source = yaml.load(fs.readFileSync(path.join(__dirname, format), "utf8"));
  compiler.compile("python", source, null, false).then((files) => {
    for (const [name, text] of Object.entries(files)) {
      // What the compiler writes has no types; it says so, and here why
      fs.writeFileSync(path.join(__dirname, name), text.replace("# type: ignore\n", "# type: ignore  # written without types\n"));
    }
  });
}
