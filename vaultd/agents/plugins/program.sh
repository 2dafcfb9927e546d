#!/bin/sh
# written by vaultd; `vaultd disconnect` takes it away.
exec @HOOK_SH@ @AGENT@ @EVENT@
