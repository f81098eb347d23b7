// Access lists, as values for specifications.
include "machine.dfy"
module AccessLists {
  import opened Machine
  // What a list gives to one user, or one group. Rights are those of a mode: 4 to read, 2 to write, 1 to execute, and
  // sums of them.
  datatype Entry = Entry(group: bool, id: uint32, rights: uint32)
  // owner, group, other: what it gives to the owner of a file, to the file's group, and to all who are not named.
  // masked: it has a mask, which bounds what the group and those of `named` have.
  datatype AccessList = AccessList(owner: uint32, group: uint32, mask: uint32, other: uint32, masked: bool,
    named: seq<Entry>)
}
