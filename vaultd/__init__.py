"""One long-term memory for coding agents, kept as a plain Markdown git vault.

Layers, highest first; a module imports only from layers below its own:

    5  cli, __main__      one module per command; the only place where errors become messages
    4  http, mcp          what the daemon answers clients with; they see the engine as `engine.service.Service` only
       client             asks a running daemon over its socket
    3  engine             use cases: read, decide, write
    2  store              effects: files, git, the index. `store.fs` has the durable verbs
       agents             data: one declarative file per agent, and the pure code that reads them: tables (the files),
                          normalise (payloads), shapes (what is printed), hookfile and mcpfile (entries)
       config             the only reader of the environment and of configuration files
    1  core               pure decisions: no files, no clock, no randomness
    0  errors             every exception and its exit code

The way of an event:

    an agent fires a hook      hooks/vaultd-hook: bytes into .vaultd/inbox/new, nothing parsed
    store.inbox.read           Delivery: header and payload
    agents.normalise           Event, in words that are the same for every agent, or Rejected
    core.sanitize.observe      Observation: the only way from untrusted text to a store
    engine.ingest              observation filed in done/; at a turn's or session's end:
      engine.sessions            session page, handoff, log line
      engine.offers              what the next session may claim, as files that the hook finds
    engine.history             git commits of exact paths
    engine.reconcile           the index follows the disk
    engine.recall              search, by a command
    engine.embedding           vectors of pages, where the settings ask for them; else it is not even imported

The way of a question:

    an agent calls a tool      `vaultd mcp`: a small bridge from the agent's pipe to the daemon's socket
    http                       the daemon's socket and port: requests checked and bounded; `/mcp` goes on to mcp
    mcp.tools                  arguments checked, one call of the service, an answer in words and data
    engine.local               the service: which project is meant (scoping), then answers, reading, authoring, passing
    engine.live                the index that the daemon keeps open, brought up to date before it answers
    engine.answers             a question to the index, and hits with the passages that answer
    store.matching             the streams of one ranking: words (scoring, rarity), passages, time, links, meaning
    core.fusion                how the streams are added up, and every constant of that

The way into an agent's files:

    agents/<id>.toml           where its hooks, MCP servers and instructions are, what an entry looks like, and how that
                               is known; `agents.tables` leaves out what there is no evidence of
    engine.parts               each of its files with the edits that put ours in and take it out
    agents.edits               such an edit of JSON, TOML or YAML: text to text, every other byte as it was
    engine.connecting          one plan for all of them; `engine.uninstall` the way back
    engine.foreign             a plan carried out: a copy, a record, one rename

Words: a *delivery* is a file in the inbox, an *event* what it means, an *observation* the sanitised event that is kept.
A *page* is a Markdown file of the vault; its *revision* the hash of its bytes. A *handoff* is what a session leaves for
the next: *open*, *accepted* or *expired* is the folder it lies in; *provisional* while its session has not ended. An
*offer* is a handoff prepared for a place; a *claim* is the rename that takes it. A session's *generation* rises when it
is prompted again after it was closed. To *reconcile* is to make the index say what the disk says.

What a crash leaves, and what repairs it:

    after ...                                on disk                              repaired by
    the hook's temp was written              litter in inbox/tmp                  tidy
    the link into inbox/new (delivered)      event pending, perhaps its temp      ingest; tidy
    a claim's rename, before it printed      page in accepted, temp names it      tidy: back to open after 10 minutes
    a page's temp was written                litter beside it                     tidy
    a page was renamed (truth)               closing event still in inbox/new     ingest: resumed
    done/ was published, new/ not removed    both                                 ingest: already complete
    git was killed, or we at a commit        a lock, perhaps the index behind     the next commit or tidying, when no
                                                                                  living process owns the lock
    the commit (history)                     the index is behind                  reconcile
    an index was half written                a damaged index                      made anew
    vectors were half written                a tail without its sum               the next filling: embedded again

Order everywhere: truth, acknowledgement, history, derived.
"""

__version__ = "0.1.0"
