include "attributes.dfy"
include "fileio.dfy"
include "lookup.dfy"
include "readdir.dfy"
include "create.dfy"
include "remove.dfy"
include "rename.dfy"
include "volume.dfy"
// All procedures of the file system.
