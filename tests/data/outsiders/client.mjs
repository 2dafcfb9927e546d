// The TypeScript client of MCP: connects, lists the tools, calls one, and prints what it got as JSON.
//   node client.mjs SDK_FOLDER stdio COMMAND... | http URL TOKEN CWD
const [sdk, how, ...rest] = process.argv.slice(2);
const load = (name) => import(`${sdk}/dist/esm/client/${name}.js`);
const { Client } = await load("index");
let transport;
if (how === "stdio") {
  const { StdioClientTransport } = await load("stdio");
  transport = new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env, stderr: "inherit" });
} else {
  const { StreamableHTTPClientTransport } = await load("streamableHttp");
  const headers = { Authorization: `Bearer ${rest[1]}`, "X-Vaultd-Cwd": encodeURI(rest[2]) };
  transport = new StreamableHTTPClientTransport(new URL(rest[0]), { requestInit: { headers } });
}
const client = new Client({ name: "a-client", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const answer = await client.callTool({ name: "memory_query", arguments: { query: "price loader" } });
const wrong = await client.callTool({ name: "memory_query", arguments: { querry: "price loader" } });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), answer, wrong, server: client.getServerVersion() }));
await client.close();
