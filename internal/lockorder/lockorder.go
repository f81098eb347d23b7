// Package lockorder is the order of all locks and waits of the server, in one place, and in tests a check of it.
//
// Each lock has a class. Whoever holds a lock may wait only for one of a class further down in the list below, or of
// the same class and a higher number (Nth); then no circle of waiting can close. Waits that are no mutexes (for a
// condition, a channel, an object of a transaction) have their classes in the list, too: who waits there holds nothing
// that stands below it. To try a lock is not to wait, and may be done in any order.
//
// A normal build has mutexes of package sync here, and functions that are empty. With the race detector, or with the
// build tag lockorder, each goroutine has a list of what it holds; what is out of order ends the process with both
// places, whether or not anybody came to stand still.
//
// What is in the list but is more than a lock:
//
//   - Objects are the locks of transactions (verified/trusted/locks.s.dfy). Among them the order is that of their keys,
//     and proved (verified/txn/waiting.dfy); here it is checked once more, in locks.
//   - A transaction that commits waits for Room in the log with its objects, and its part of the gates, held. Those
//     that make room (the logger, the installer, and whoever waits for Durable) hold nothing above Journal.
//   - Durable is waited for when all objects are given back (Finish in verified/txn/ending.dfy).
//   - A call waits for an earlier one of the same client that is Underway, before its transaction begins.
//
// Not in the list are locks under which nobody waits for another lock, of packages that know none of the above: mount3,
// advisory (and before that nlm.Local), callout, daemon, standby, the clients of disk/nbd and disk/rbd, what the disks
// in memory have.
package lockorder

// The classes, outermost first. What is waited for, and not held, is marked: wait.
type (
	Sources struct{} // status: where its numbers come from, while they are asked

	// oncrpc
	Share       struct{} // wait: memory for a call
	Admission   struct{} // wait: fewer calls of a host that change something
	Turn        struct{} // wait: a turn of the processor
	Fewer       struct{} // wait: fewer calls of a connection in progress, or less queued
	Connections struct{} // the table of connections of a server
	Connection  struct{} // one of them: what it has queued and is about to write
	Memory      struct{} // the memory for calls and replies
	Turns       struct{} // turns of the processor
	Changes     struct{} // who has calls under way that change something
	Around      struct{} // the pipe by which the network is looked at

	// exports, groups
	HostNames struct{} // the hosts in a file of exports, while they are looked up
	Exports   struct{} // what is known of peers
	Groups    struct{} // what is known of users

	// mount
	Naming  struct{} // the names of a file, by inode number; one at a time
	Nodes   struct{} // what the kernel knows of a file
	Default struct{} // shared while a file is made as its directory's default list says, exclusive for who sets that

	// fs, around transactions
	Trimming struct{} // a round of the trimmer
	Growing  struct{} // the volume becomes larger
	Lists    struct{} // the table of access lists is looked through, and grows
	Underway struct{} // wait: an earlier call of the same client, which is the same call
	Ahead    struct{} // wait: what is being read ahead
	Streams  struct{} // places for large unstable WRITEs
	Freeing  struct{} // a step of the freer
	Kept     struct{} // which kept file precedes which
	Replies  struct{} // the table of calls that were done
	Midst    struct{} // a goroutine is in the midst of a transaction that it runs
	Idle     struct{} // wait: the logger and the installer, for something to do
	Durable  struct{} // wait: the group of a commit is on the device

	// txn
	Objects   struct{} // objects of transactions, in the order of their keys
	Large     struct{} // one commit at a time of those with many parts of blocks
	Gates     struct{} // the gates of the allocators: shared by commits, exclusive for who reads a bitmap
	Room      struct{} // wait: room for another transaction in the log
	Allocator struct{} // what an allocator knows; held while a block of its bitmap is read

	// the device
	Spare       struct{} // free blocks whose room is given back; held during a discard
	Barrier     struct{} // one barrier at a time
	Device      struct{} // wait: the device answers
	Moments     struct{} // shared by what changes the device, exclusive for who takes a moment of it
	Changing    struct{} // an image is being changed, or its room
	HostRoom    struct{} // room on the host below an image
	FileBarrier struct{} // the first barrier of a file that failed

	// nobody waits for anything but what stands below while these are held, least of all for the device
	LockTable struct{} // a part of the table of locks
	Journal   struct{} // the journal's mutex
	Pages     struct{} // what is in memory of the tree of codes
	Link      struct{} // how much was written to a connection
	Readers   struct{} // who reads files in order
	Reads     struct{} // reads of the device that are under way
	Notes     struct{} // wishes, and damaged blocks
	Damage    struct{} // damaged blocks that nobody has named yet
	Moment    struct{} // what is kept for a moment
	Spill     struct{} // where it is kept
)
