// written by vaultd for @AGENT@; `vaultd disconnect` takes it away.
// Files what happens in a session with the hook program, one at a time, and gives the first prompt the handoff.
// Opens no connection; whatever goes wrong here stays here.
@COMMON@
async function send(event: string, ctx: any, more: object = {}): Promise<string> {
  try {
    const cwd = ctx?.cwd ?? process.cwd()
    const session = ctx?.sessionManager?.getSessionId?.() ?? ""
    const transcript = ctx?.sessionManager?.getSessionFile?.() ?? ""
    const payload = JSON.stringify({ session, cwd, transcript, ...more })
    const sent = queue.then(() => hook(event, cwd, payload))
    queue = sent.catch(() => "")
    return await sent
  } catch {
    return ""
  }
}

function texts(content: any): string {
  if (typeof content === "string") return content
  const parts = Array.isArray(content) ? content.filter((part: any) => part?.type === "text") : []
  return parts.map((part: any) => part.text).join("\n")
}

export default function (pi: any) {
  // A handler that never throws: Pi would take a fault in one for a fault of the session.
  const on = (name: string, handler: (event: any, ctx: any) => unknown) =>
    pi.on(name, async (event: any, ctx: any) => {
      try {
        return await handler(event ?? {}, ctx)
      } catch {
        return undefined
      }
    })
  const calls = new Map<string, { args: any; told: boolean }>()
  let answer = ""

  on("session_start", async (event: any, ctx: any) => {
    if (event?.reason !== "reload") void send("session_start", ctx, { reason: event?.reason })
  })
  on("before_agent_start", async (event: any, ctx: any) => {
    if (event?.messageType && event.messageType !== "user") return undefined // another extension's turn
    const content = await soon(send("before_agent_start", ctx, { prompt: String(event?.prompt ?? "") }))
    return content ? { message: { customType: "vaultd", content, display: false } } : undefined
  })
  on("tool_execution_start", async (event: any) => {
    calls.set(event?.toolCallId, { args: event?.args, told: false })
  })
  on("tool_result", async (event: any, ctx: any) => {
    const { toolName, toolCallId, input, isError, structuredContent } = event ?? {}
    const known = calls.get(toolCallId)
    if (known) known.told = true
    const told = isError || toolName === "bash" ? texts(event?.content).slice(-MOST) : ""
    const call = { tool: toolName, callID: toolCallId, args: input, exit: structuredContent?.exit_code }
    // Waited for: what is only queued dies with the client.
    await soon(send("tool_result", ctx, { call: { ...call, failed: Boolean(isError), output: told } }))
  })
  // The only event of a call that was refused, broken off, or whose arguments were wrong.
  on("tool_execution_end", async (event: any, ctx: any) => {
    const { toolName, toolCallId, isError } = event ?? {}
    const known = calls.get(toolCallId)
    calls.delete(toolCallId)
    if (!isError || known?.told) return
    const call = { tool: toolName, callID: toolCallId, args: known?.args, failed: true }
    void send("tool_refused", ctx, { call: { ...call, error: texts(event?.result?.content).slice(0, MOST) } })
  })
  on("agent_end", async (event: any) => {
    const said = (event?.messages ?? []).filter((message: any) => message?.role === "assistant")
    answer = texts(said[said.length - 1]?.content)
  })
  // `agent_end` comes again after a retry or a queued message.
  on("agent_settled", async (event: any, ctx: any) => {
    void send("agent_settled", ctx, { text: answer, reason: event?.aborted ? "interrupted" : "" })
    answer = ""
  })
  on("session_before_compact", async (_: any, ctx: any) => {
    void send("session_before_compact", ctx)
  })
  on("session_compact", async (_: any, ctx: any) => {
    void send("session_compact", ctx)
  })
  on("session_shutdown", async (event: any, ctx: any) => {
    if (event?.reason !== "reload") void send("session_shutdown", ctx, { reason: event?.reason })
    await soon(queue)
  })
}
