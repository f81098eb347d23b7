// What is translated to Go: the top of every part, which includes the rest.
include "journal/threads.dfy"
include "journal/scrubthread.dfy"
include "txn/run.dfy"
include "fs/procedures/all.dfy"
include "fs/mkfs/commissioned.dfy"
include "fs/format/copies.dfy"
include "fs/blocks/regions.dfy"
include "fs/exec/write.dfy"
