// A client of the TypeScript SDK of MCP that calls the tool and stays connected.
//
//     node ending.mjs FOLDER URL
//
// FOLDER is where `npm install @modelcontextprotocol/sdk` was run. It prints a line when the tool
// has answered, and another one for each error of the connection.
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url] = process.argv.slice(2);
const { resolve } = createRequire(join(folder, "package.json"));
const load = (path) => import(resolve(`@modelcontextprotocol/sdk/client/${path}`));
const { Client } = await load("index.js");
const { StreamableHTTPClientTransport } = await load("streamableHttp.js");

const client = new Client({ name: "ending", version: "1" });
client.onerror = (error) => console.log(`error ${error.name}`);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const text = "The bridge was opened in 1911.";
const result = await client.callTool({
  name: "check_answer",
  arguments: { question: "When was it opened?", response: text, documents: [text] },
});
console.log(result.isError ? "failed" : "answered");
setInterval(() => {}, 1000);
