// written by vaultd; `vaultd disconnect` takes it away.
// Files what happens in a session with the hook program, one at a time, and gives the first prompt the handoff.
// Opens no connection; whatever goes wrong here stays here.
import { spawn } from "node:child_process"
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry"

const HOOK = @HOOK_JS@
const MOST = 64 * 1024 // characters of a tool's output
const WAIT_MS = 4000

type Place = { session: string; subagent?: string }
type Turn = { run: string; asked: string; given: Promise<string> }

const queues = new Map<string, Promise<unknown>>() // by session: one process serves them all
const ids = new Map<string, string>() // session key -> session
const parents = new Map<string, string>() // session key of a subagent -> of who asked for it
const folders = new Map<string, string>() // agent -> its workspace, which only some events tell
const waiting = new Map<string, object>() // starts of sessions whose workspace is not known yet
const turns = new Map<string, Turn>()

function hook(event: string, cwd: string, payload: object): Promise<string> {
  return new Promise((resolve) => {
    let said = ""
    let late: ReturnType<typeof setTimeout> | undefined
    const done = () => (clearTimeout(late), resolve(said))
    try {
      const text = JSON.stringify(payload)
      const child = spawn(HOOK, ["@AGENT@", event], { cwd, stdio: ["pipe", "pipe", "ignore"] })
      child.on("error", done)
      child.on("close", done)
      child.stdin.on("error", () => {})
      child.stdout.on("error", () => {})
      late = setTimeout(() => (child.kill("SIGKILL"), done()), WAIT_MS)
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (part: string) => (said += part))
      child.stdin.end(text)
    } catch {
      done()
    }
  })
}

function send(event: string, at: Place, cwd: string, more: object = {}): Promise<string> {
  const before = queues.get(at.session) ?? Promise.resolve()
  const sent = before.then(() => hook(event, cwd, { ...at, cwd, ...more }))
  const last = sent.catch(() => "").finally(() => queues.get(at.session) === last && queues.delete(at.session))
  queues.set(at.session, last)
  return sent
}

function place(event: any, ctx: any, ends = false): Place {
  const key = String(ctx.sessionKey ?? event.sessionKey ?? "")
  const own = String(event.sessionId ?? ctx.sessionId ?? ids.get(key) ?? key)
  if (key && !ends) ids.set(key, own) // the key may be the next session's already
  let top = key
  for (let depth = 0; parents.has(top) && depth < 8; depth++) top = parents.get(top) as string
  return top === key ? { session: own } : { session: ids.get(top) ?? top, subagent: own }
}

function folder(ctx: any): string {
  const agent = String(ctx.agentId ?? "")
  if (ctx.workspaceDir) folders.set(agent, String(ctx.workspaceDir))
  return folders.get(agent) ?? ""
}

function texts(content: any): string {
  if (typeof content === "string") return content
  const parts = Array.isArray(content) ? content.filter((part: any) => part?.type === "text") : []
  return parts.map((part: any) => part.text).join("\n")
}

// What was asked; undefined for what no person did (a timer, another session), and while history stands for it.
function asked(event: any, ctx: any): string | undefined {
  const origin = ctx.inputProvenance?.kind
  if ((ctx.trigger && ctx.trigger !== "user") || (origin && origin !== "external_user")) return undefined
  return String(event.currentUserMessage ?? event.prompt ?? "")
}

export default definePluginEntry({
  id: "vaultd",
  name: "vaultd",
  description: "Files what happens in a session, and gives the first prompt the handoff",
  register(api: any) {
    const on = (name: string, handle: (event: any, ctx: any) => unknown) =>
      api.on(name, async (event: any, ctx: any) => {
        try {
          return await handle(event ?? {}, ctx ?? {})
        } catch {
          return undefined
        }
      })

    on("session_start", (event, ctx) => {
      const at = place(event, ctx)
      if (at.subagent) return
      const more = { source: event.resumedFrom ? "resume" : "startup" }
      const cwd = folder(ctx)
      if (cwd) void send("session_start", at, cwd, more)
      else waiting.set(at.session, more)
    })

    // Runs for each turn of the model, the same question again: that is filed once, and given the same text each time.
    on("before_prompt_build", async (event, ctx) => {
      const at = place(event, ctx)
      const cwd = folder(ctx)
      const prompt = asked(event, ctx)
      if (at.subagent || !cwd || prompt === undefined) return
      const start = waiting.get(at.session)
      if (start && waiting.delete(at.session)) void send("session_start", at, cwd, start)
      const run = String(ctx.runId ?? "")
      const what = String(event.currentUserMessageId ?? prompt)
      let turn = turns.get(at.session)
      if (!turn || turn.run !== run || turn.asked !== what) {
        turn = { run, asked: what, given: send("before_prompt_build", at, cwd, { prompt, runId: run }) }
        turns.set(at.session, turn)
      }
      const given = await turn.given
      return given ? { prependContext: given } : undefined
    })

    on("after_tool_call", (event, ctx) => {
      const { toolName, toolCallId, params, result, error } = event
      const cwd = folder(ctx)
      if (!cwd) return
      const details = result?.details
      const shell = ["exec", "bash"].includes(toolName)
      const told = shell || error || result?.isError ? texts(result?.content ?? result).slice(-MOST) : ""
      const call = { tool: toolName, callID: toolCallId, args: params, exit: details?.exitCode, output: told }
      const files = params?.path ?? params?.file_path
      void send("after_tool_call", place(event, ctx), cwd, { call: { ...call, files, error }, runId: ctx.runId })
    })

    on("before_compaction", (event, ctx) => {
      if (folder(ctx)) void send("before_compaction", place(event, ctx), folder(ctx))
    })
    on("after_compaction", (event, ctx) => {
      if (folder(ctx)) void send("after_compaction", place(event, ctx), folder(ctx))
    })

    on("subagent_spawned", (event, ctx) => {
      const child = String(event.childSessionKey ?? ctx.childSessionKey ?? "")
      if (child && ctx.requesterSessionKey) parents.set(child, String(ctx.requesterSessionKey))
    })

    // Awaited, as is the end of a session: a run from the command line may end with it.
    on("agent_end", async (event, ctx) => {
      const at = place(event, ctx)
      const cwd = folder(ctx)
      if (!at.subagent) turns.delete(at.session)
      if (!cwd) return
      const said = (event.messages ?? []).filter((message: any) => message?.role === "assistant")
      const text = texts(said[said.length - 1]?.content)
      await send(at.subagent ? "subagent_end" : "agent_end", at, cwd, { text, runId: ctx.runId })
    })

    on("session_end", async (event, ctx) => {
      const at = place(event, ctx, true)
      const cwd = folder(ctx)
      const key = String(ctx.sessionKey ?? event.sessionKey ?? "")
      if (ids.get(key) === event.sessionId) ids.delete(key)
      parents.delete(key)
      if (at.subagent) return
      turns.delete(at.session)
      if (!waiting.delete(at.session) && cwd) await send("session_end", at, cwd, { reason: event.reason })
    })
  },
})
