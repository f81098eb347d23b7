// What is translated to Go of the examples.
include "simplenfs/simplenfs.dfy"
