// What is translated to Go: the top of every part, which includes the rest.
include "journal/threads.dfy"
include "txn/commit.dfy"
include "fs/nfsops.dfy"
include "fs/dirformat.dfy"
include "fs/super.dfy"
