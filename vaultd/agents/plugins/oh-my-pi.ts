// written by vaultd for @AGENT@; `vaultd disconnect` takes it away.
// Files what happens in a session with the hook program, one at a time, and gives the first prompt the handoff.
// Opens no connection; whatever goes wrong here stays here.
@COMMON@
// By agent, and by transcript without its ending: the session it works for. This module is shared by all sessions of a
// process, subagents' among them.
const roots = new Map<string, string>()
const mains = new Map<string, string>()

type Place = { session: string; cwd: string; transcript: string; subagent?: string }

function send(event: string, at: Place, more: object = {}): Promise<string> {
  const payload = JSON.stringify({ ...at, ...more })
  const sent = queue.then(() => hook(event, at.cwd, payload))
  queue = sent.catch(() => "")
  return sent
}

// Releases that do not tell in `agent` what works keep a subagent's transcript in a folder named like its parent's.
// What an advisor does comes with the context of the session that it advises: then only its name tells them apart.
function place(ctx: any): Place {
  const own = String(ctx?.sessionManager?.getSessionId?.() ?? "")
  const file = String(ctx?.sessionManager?.getSessionFile?.() ?? "")
  const agent = ctx?.agent
  const above = [...mains].find(([stem]) => file.startsWith(stem) && /[\\/]/.test(file.charAt(stem.length)))?.[1]
  const sub = agent ? agent.kind === "sub" : above !== undefined
  const session = (sub && (roots.get(agent?.parentId) ?? above)) || own
  if (agent?.id) roots.set(agent.id, session)
  if (!sub && file) mains.set(file.replace(/\.jsonl$/, ""), own)
  const at: Place = { session, cwd: String(ctx?.cwd ?? process.cwd()), transcript: file }
  return sub ? { ...at, subagent: own !== session ? own : String(agent?.id) } : at
}

function texts(content: any): string {
  if (typeof content === "string") return content
  const parts = Array.isArray(content) ? content.filter((part: any) => part?.type === "text") : []
  return parts.map((part: any) => part.text).join("\n")
}

export default function (pi: any) {
  let here: Place | undefined // the main session that this binding serves
  let asked: string | undefined
  let given = ""
  const ended = new Set<string>() // the calls of this turn

  const on = (name: string, handle: (event: any, at: Place) => unknown) =>
    pi.on(name, async (event: any, ctx: any) => {
      try {
        return await handle(event ?? {}, place(ctx))
      } catch {
        return undefined
      }
    })

  const moved = (event: any, at: Place) => {
    if (at.subagent || at.session === here?.session) return
    const reason = String(event.reason ?? event.type ?? "")
    if (here) void send("session_shutdown", here, { reason })
    here = at
    asked = undefined
    given = ""
    void send("session_switch", at, { reason })
  }

  // The same prompt may be prepared again, and only what the last time returned is used: so until a turn ends it is
  // filed once, and given the same text each time.
  const settled = (at: Place) => {
    if (at.subagent) return
    asked = undefined
    given = ""
  }

  on("session_start", (_, at) => {
    if (at.subagent) return
    here = at
    void send("session_start", at)
  })
  on("session_switch", moved)
  on("session_branch", moved)
  on("before_agent_start", async (event, at) => {
    if (at.subagent) return
    here = at
    const prompt = String(event.prompt ?? "")
    if (prompt !== asked) {
      asked = prompt
      given = (await soon(send("before_agent_start", at, { prompt }))) || given
    }
    if (!given) return
    return { message: { customType: "vaultd", content: given, display: false, attribution: "agent" } }
  })
  // Waited for: what is only queued dies with the client.
  on("tool_result", async (event, at) => {
    const { toolName, toolCallId, input, isError, details } = event
    const running = !isError && (details?.async?.state === "running" || Boolean(details?.service))
    const told = isError || toolName === "bash" ? texts(event.content).slice(-MOST) : ""
    const source = details?.meta?.source // without the lines that were asked for: `a.py:1-20`
    const named = source?.type === "path" ? source.value : (input?.paths ?? input?.path)
    const files = [named].flat().filter((path: any) => path && !String(path).includes("://"))
    // A tool that is not offered as such, as those of MCP servers, is called by writing its arguments to its address.
    // That write ends with the same id, after the tool that it called; without it only when there is no such tool.
    const device = toolName === "write" ? /^xd:\/\/([^/?#]+)/.exec(String(input?.path ?? ""))?.[1] : undefined
    if (device && ended.has(toolCallId)) return
    ended.add(toolCallId)
    const call = { tool: device ?? toolName, callID: toolCallId, args: input, files }
    const exit = details?.exitCode ?? (toolName === "bash" && !isError ? 0 : undefined)
    const end = running ? { running } : { exit, failed: Boolean(isError) }
    await soon(send("tool_result", at, { call: { ...call, ...end, output: told } }))
  })
  on("turn_end", (_, at) => {
    settled(at)
    ended.clear()
  })
  on("agent_end", async (event, at) => {
    settled(at)
    if (event.willContinue) return
    const said = (event.messages ?? []).filter((message: any) => message?.role === "assistant")
    const text = texts(said[said.length - 1]?.content)
    await soon(send(at.subagent ? "subagent_end" : "agent_end", at, { text }))
  })
  on("session_before_compact", (_, at) => void send("session_before_compact", at))
  on("session_compact", (_, at) => void send("session_compact", at))
  on("session_shutdown", async (_, at) => {
    if (!at.subagent) await soon(send("session_shutdown", at, { reason: "exit" }))
  })
}
