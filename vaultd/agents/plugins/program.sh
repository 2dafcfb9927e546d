#!/bin/sh
# written by vaultd for @AGENT@; `vaultd disconnect` takes it away.
exec @HOOK_SH@ @AGENT@ @EVENT@
