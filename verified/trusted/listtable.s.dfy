// TRUSTED: what the numbers of access lists mean on a volume. Go: internal/runtime/listtable.
include "../lib/accesslists.dfy"

module {:extern "listtable"} ListTableS {
  import opened Machine
  import opened AccessLists

  // The table only grows, and no number gets another meaning. So `table` has all that it will ever have. A number that
  // an inode has is in it before the inode has it: fs/lists.go puts it there first.
  class {:extern "Table"} Table {         // tested: listtable.TestTable
    ghost const table: map<uint32, AccessList>
    method {:extern "Has"} Has(number: uint32) returns (yes: bool)
      ensures yes <==> number in table
    method {:extern "Rights"} Rights(number: uint32)
      returns (owner: uint32, group: uint32, mask: uint32, other: uint32, masked: bool, named: uint64)
      requires number in table
      ensures var l := table[number]; owner == l.owner && group == l.group && mask == l.mask && other == l.other &&
        masked == l.masked && named as int == |l.named|
    method {:extern "Named"} Named(number: uint32, i: uint64) returns (group: bool, id: uint32, rights: uint32)
      requires number in table && i as int < |table[number].named|
      ensures Entry(group, id, rights) == table[number].named[i as int]
  }
}
