// written by vaultd for @AGENT@; `vaultd disconnect` takes it away.
// Files what happens in a session with the hook program, one at a time, and puts the handoff before its prompts.
// Opens no connection; whatever goes wrong here stays here.
@COMMON@
type Place = { session: string; cwd: string; subagent?: string }
type Call = { tool: string; callID: string; args: any; files: unknown[] }

type Shared = {
  places: Map<string, Place> // by session key: where its events and those of its subagents belong
  given: Map<string, string> // by session: what is put before its prompts
  busy: Set<string> // sessions of which something was told since their last turn ended
  inner: Set<string> // calls that a tool made for them told already
  running: Map<string, Call> // by its own id of a command that went on in the background
}

// OpenClaw loads this file several times in one process: for the Gateway, and for its agents.
const kept = Symbol.for("vaultd.openclaw")
const fresh = { places: new Map(), given: new Map(), busy: new Set(), inner: new Set(), running: new Map() }
const { places, given, busy, inner, running }: Shared = ((globalThis as any)[kept] ??= fresh)

// The Gateway runs for months: the oldest of a thousand is forgotten.
function keep<Value>(map: Map<string, Value>, key: string, value: Value) {
  map.delete(key)
  map.set(key, value)
  for (const oldest of map.keys()) if (map.size > 1000) map.delete(oldest)
}

function send(event: string, at: Place, more: object = {}): Promise<string> {
  const payload = JSON.stringify({ ...at, ...more })
  const sent = queue.then(() => hook(event, at.cwd, payload))
  queue = sent.catch(() => "")
  return sent
}

// OpenClaw keeps its id of a session over `/new`: the run that a conversation began with tells conversations apart.
function begun(event: any, ctx: any): string {
  const told = (event.messages ?? []).find((message: any) => message?.__openclaw?.runId)
  return String(told?.__openclaw.runId ?? ctx.runId ?? "").slice(0, 8)
}

function isSub(ctx: any): boolean {
  return String(ctx.sessionKey).includes(":subagent:")
}

function place(ctx: any): Place | undefined {
  const at = places.get(String(ctx.sessionKey))
  return at && isSub(ctx) ? { ...at, subagent: String(ctx.sessionId ?? ctx.sessionKey) } : at
}

function texts(content: any): string {
  if (typeof content === "string") return content
  const parts = Array.isArray(content) ? content.filter((part: any) => part?.type === "text") : []
  return parts.map((part: any) => part.text).join("\n")
}

function filesOf(args: any): unknown[] {
  const patched = String(args?.input ?? "").matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)
  return args?.path ? [args.path] : [...patched].map((found) => found[1])
}

async function asked(event: any, ctx: any) {
  if (isSub(ctx)) return undefined
  const key = String(ctx.sessionKey)
  const known = places.get(key)
  const begins = `${ctx.sessionId}.${begun(event, ctx)}`
  const goesOn = known?.session.startsWith(`${ctx.sessionId}.`) && event.messages?.length
  const at = { session: goesOn ? known!.session : begins, cwd: String(ctx.workspaceDir ?? process.cwd()) }
  keep(places, key, at)
  const byPerson = (ctx.trigger ?? "user") === "user" && (ctx.inputProvenance?.kind ?? "external_user") === "external_user"
  if (byPerson && event.prompt) {
    busy.add(at.session)
    const text = await soon(send("before_prompt_build", at, { prompt: String(event.prompt) }))
    if (text) keep(given, at.session, text)
  }
  // What is put before a prompt is not kept in the conversation: so each prompt of it is given the same text.
  const text = given.get(at.session)
  return text ? { prependContext: text } : undefined
}

async function called(event: any, ctx: any) {
  const at = place(ctx)
  if (!at) return
  busy.add(at.session)
  const { toolName, toolCallId, params, result, error } = event
  const outer = /^tool_search_code:([^:]+):/.exec(String(toolCallId))?.[1]
  if (outer) inner.add(outer)
  if (inner.delete(toolCallId) && toolName === "tool_call") return
  const { status, exitCode, sessionId, error: why } = result?.details ?? {}
  const said = texts(result?.content)
  let call: Call = { tool: toolName, callID: toolCallId, args: params, files: filesOf(params) }
  const goesOn = toolName === "exec" && status === "running"
  if (goesOn) keep(running, String(sessionId), call)
  const over = toolName === "process" && typeof exitCode === "number" ? running.get(String(params?.sessionId)) : undefined
  // The end of a command that went on in the background is told as that of the call which began it.
  if (over && running.delete(String(params?.sessionId))) call = over
  const failed = Boolean(error) || (typeof exitCode === "number" && exitCode !== 0)
  // Below its first line the error of an edit quotes the file.
  const trouble = failed ? String(why || (error !== "error" && error) || said).split("\n")[0] : ""
  const output = (call.tool === "exec" && said.slice(-MOST)) || trouble.slice(0, MOST)
  const end = goesOn ? { running: true } : { exit: exitCode, failed, output }
  // Waited for: what is only queued dies with the client.
  await soon(send("after_tool_call", at, { call: { ...call, ...end } }))
}

async function answered(event: any, ctx: any) {
  const at = place(ctx)
  // Most runs that a clock began say that there is nothing to do.
  if (!at || (!at.subagent && !busy.delete(at.session))) return
  const said = (event.messages ?? []).filter((message: any) => message?.role === "assistant")
  const text = texts(said[said.length - 1]?.content)
  await soon(send(at.subagent ? "subagent_end" : "agent_end", at, { text }))
}

async function ended(event: any, ctx: any) {
  const at = place(ctx)
  if (!at || at.subagent) return
  places.delete(String(ctx.sessionKey))
  given.delete(at.session)
  await soon(send("session_end", at, { reason: event.reason }))
}

function spawned(event: any, ctx: any) {
  const at = places.get(String(ctx.requesterSessionKey))
  if (at) keep(places, String(event.childSessionKey), at)
}

function unspawned(event: any, ctx: any) {
  if (event.targetKind === "subagent") places.delete(String(event.targetSessionKey))
}

export default {
  id: "vaultd",
  name: "vaultd",
  description: "one long-term memory for coding agents",
  register(api: any) {
    // A handler that never throws: OpenClaw would take a fault in one for a fault of the run.
    const on = (name: string, handler: (event: any, ctx: any) => unknown) =>
      api.on(name, async (event: any, ctx: any) => {
        try {
          return await handler(event ?? {}, ctx ?? {})
        } catch {
          return undefined
        }
      })
    on("before_prompt_build", asked)
    on("after_tool_call", called)
    on("agent_end", answered)
    on("session_end", ended)
    on("subagent_spawned", spawned)
    on("subagent_ended", unspawned)
    on("before_compaction", (_, ctx) => {
      const at = place(ctx)
      if (at) void send("before_compaction", at)
    })
    on("after_compaction", (_, ctx) => {
      const at = place(ctx)
      if (at) void send("after_compaction", at)
    })
  },
}
