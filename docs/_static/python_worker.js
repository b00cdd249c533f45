// Python in a worker, so that a page never waits for it: Pyodide, the library's pure-Python part and explorers.py.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const STAGES = ["Python itself, 10 MB", "its interpreter starts", "the library", "the library is imported", "ready"];
const at = (done) => self.postMessage({ stage: STAGES[done], done, of: STAGES.length - 1 });

// The largest file first, with what has come so far; loadPyodide then finds it in the browser's cache.
async function fetched(address) {
  const answer = await fetch(address);
  const size = Number(answer.headers.get("Content-Length")) || 1e7;
  let got = 0;
  for (const reader = answer.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    got += value.length;
    self.postMessage({ stage: STAGES[0], done: Math.min(0.99, got / size), of: STAGES.length - 1 });
  }
}

const ready = (async () => {
  const here = new URL("./", import.meta.url).href;
  at(0);
  await fetched(here + "pyodide/pyodide.asm.wasm");
  at(1);
  const python = await loadPyodide({ indexURL: here + "pyodide/" });
  at(2);
  const library = await (await fetch(here + "edl_labs.zip")).arrayBuffer();
  python.unpackArchive(library, "zip", { extractDir: "/library" });
  at(3);
  python.runPython("import sys, json; sys.path.insert(0, '/library'); import explorers");
  at(4);
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
