// Python in a worker, so that a page never waits for it: Pyodide, the library's pure-Python part and explorers.py.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const ready = (async () => {
  const here = new URL("./", import.meta.url).href;
  const python = await loadPyodide({ indexURL: here + "pyodide/" });
  const library = await (await fetch(here + "edl_labs.zip")).arrayBuffer();
  python.unpackArchive(library, "zip", { extractDir: "/library" });
  python.runPython("import sys, json; sys.path.insert(0, '/library'); import explorers");
  return python;
})();

self.onmessage = async ({ data }) => {
  try {
    const python = await ready;
    python.globals.set("asked", JSON.stringify(data.options));
    const text = python.runPython(`json.dumps(explorers.${data.kind}(**json.loads(asked)))`);
    self.postMessage({ number: data.number, result: JSON.parse(text) });
  } catch (error) {
    const lines = String(error.message || error).trim().split("\n");
    self.postMessage({ number: data.number, error: lines[lines.length - 1] });
  }
};
