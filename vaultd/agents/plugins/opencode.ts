// written by vaultd for @AGENT@; `vaultd disconnect` takes it away.
// Files what happens in a session with the hook program, one at a time, and puts the handoff into the first prompt.
// Opens no connection; whatever goes wrong here stays here.
@COMMON@
// What all instances share: one process may serve several folders, and a session belongs to one of them.
const parents = new Map<string, string>()
const answers = new Map<string, string>()
const failed = new Set<string>()

function send(event: string, cwd: string, sessionID: string, more: object = {}): Promise<string> {
  const parent = parents.get(sessionID)
  const who = parent ? { session: parent, subagent: sessionID } : { session: sessionID }
  const payload = JSON.stringify({ ...who, cwd, ...more })
  const sent = queue.then(() => hook(event, cwd, payload))
  queue = sent.catch(() => "")
  return sent
}

// A handler that never throws: OpenCode would take a fault in one for a fault of the session.
function safe<T extends unknown[]>(handler: (...args: T) => unknown) {
  return async (...args: T) => {
    try {
      await handler(...args)
    } catch {}
  }
}

export const Vaultd = async ({ directory }: { directory: string }) => {
  const open = new Set<string>()

  const happened = ({ event }: any) => {
    const info = event.properties?.info
    const sessionID = event.properties?.sessionID
    if (/^session\.(created|updated)$/.test(event.type) && info?.parentID) {
      parents.set(info.id, parents.get(info.parentID) ?? info.parentID)
    } else if (event.type === "session.created" && info) {
      open.add(info.id)
      void send("session.created", directory, info.id)
    } else if (event.type === "session.idle" && sessionID) {
      const text = answers.get(sessionID) ?? ""
      answers.delete(sessionID)
      void send(parents.has(sessionID) ? "subagent.idle" : "session.idle", directory, sessionID, { text })
    } else if (event.type === "session.compacted" && sessionID) {
      answers.delete(sessionID) // the summary, which nobody was told
      void send("session.compacted", directory, sessionID)
    } else if (event.type === "session.deleted" && info && open.delete(info.id)) {
      void send("session.end", directory, info.id, { reason: "deleted" })
    } else if (event.type === "message.part.updated") {
      const part = event.properties?.part
      if (part?.type !== "tool" || part.state?.status !== "error" || failed.has(part.callID)) return
      failed.add(part.callID)
      const call = { tool: part.tool, callID: part.callID, args: part.state.input, error: String(part.state.error) }
      void send("tool.error", directory, part.sessionID, { call })
    }
  }

  const asked = async (_: any, output: any) => {
    const { id, sessionID } = output.message
    if (parents.has(sessionID)) return
    open.add(sessionID)
    const texts = output.parts.filter((part: any) => part.type === "text" && !part.synthetic)
    const said = texts.map((part: any) => part.text).join("\n")
    // `opencode run` puts quotes round a text with spaces.
    const prompt = process.argv.includes("run") ? said.replace(/^"([^]*\s[^]*)"$/, "$1") : said
    const text = await soon(send("chat.message", directory, sessionID, { prompt, messageID: id }))
    if (!text) return
    const partID = `prt_${Date.now().toString(36)}zzvaultd`
    output.parts.push({ id: partID, sessionID, messageID: id, type: "text", text, synthetic: true })
  }

  const called = async (input: any, output: any) => {
    const { tool, callID, args, sessionID } = input
    const call = { tool, callID, args, exit: output?.metadata?.exit, exists: output?.metadata?.exists }
    const text = tool === "bash" ? String(output?.output ?? "").slice(-MOST) : ""
    const wrong = output?.isError ? { error: String(output?.content?.[0]?.text ?? "it failed").slice(0, 400) } : {}
    // Waited for: what is only queued dies with the client.
    await soon(send("tool.execute.after", directory, sessionID, { call: { ...call, output: text, ...wrong } }))
  }

  return {
    event: safe(happened),
    "chat.message": safe(asked),
    "tool.execute.after": safe(called),
    "experimental.text.complete": safe((input: any, output: any) => {
      answers.set(input.sessionID, String(output?.text ?? ""))
    }),
    "experimental.session.compacting": safe((input: any) => {
      void send("session.compacting", directory, input.sessionID)
    }),
    dispose: safe(async () => {
      for (const sessionID of open) void send("session.end", directory, sessionID, { reason: "exit" })
      open.clear()
      await soon(queue)
    }),
  }
}
