import { spawn } from "node:child_process"

const HOOK = @HOOK_JS@
const MOST = 64 * 1024 // characters of a tool's output
const WAIT_MS = 4000

let queue: Promise<unknown> = Promise.resolve() // one event after the other, in the order in which they happened

function hook(event: string, cwd: string, payload: string): Promise<string> {
  return new Promise((resolve) => {
    let said = ""
    try {
      const child = spawn(HOOK, ["@AGENT@", event], { cwd, stdio: ["pipe", "pipe", "ignore"] })
      const done = () => (clearTimeout(late), resolve(said))
      const late = setTimeout(() => {
        child.kill("SIGKILL")
        child.stdout?.destroy()
        child.unref()
        done()
      }, WAIT_MS)
      child.on("error", done) // first: without a listener it would end the agent
      child.on("close", done)
      child.stdout?.on("error", () => {})
      child.stdin?.on("error", () => {})
      child.stdout?.setEncoding("utf8")
      child.stdout?.on("data", (part: string) => (said += part))
      child.stdin?.end(payload)
    } catch {
      resolve(said)
    }
  })
}

// Nobody waits longer for what is queued, at a prompt or at the end.
function soon(work: Promise<unknown>): Promise<string> {
  let late: any
  const tired = new Promise<string>((resolve) => (late = setTimeout(() => resolve(""), WAIT_MS)))
  const told = work.then((text) => String(text ?? ""), () => "")
  return Promise.race([told, tired]).finally(() => clearTimeout(late))
}
