// Package nlm speaks the lock protocols that go with NFS version 3: NLM, the Network Lock Manager, versions 1, 3, and 4
// (RFC 1813, appendix II; X/Open CAE C702), and what a server needs of NSM, the Network Status Monitor, version 1.
//
// Who holds what is in package advisory. Here are the calls on the wire, whether the caller may use the file, and the
// calls back: GRANTED when somebody has what it waited for, and the results of calls whose names end in MSG.
package nlm

// Program and versions of NLM. Version 4 has 64 bits for places in a file, the others 32.
const Program = 100021

// Versions are the versions of NLM that are served.
var Versions = []uint32{1, 3, 4}

// Program and version of NSM.
const (
	StatusProgram = 100024
	StatusVersion = 1
)

// Procedure numbers of NLM. Each of those that end in Msg is answered by a call of its own, whose number is 5 higher.
const (
	ProcNull       = 0
	ProcTest       = 1
	ProcLock       = 2
	ProcCancel     = 3
	ProcUnlock     = 4
	ProcGranted    = 5
	ProcTestMsg    = 6
	ProcLockMsg    = 7
	ProcCancelMsg  = 8
	ProcUnlockMsg  = 9
	ProcGrantedMsg = 10
	ProcTestRes    = 11
	ProcGrantedRes = 15
	ProcShare      = 20
	ProcUnshare    = 21
	ProcNMLock     = 22 // LOCK by a client that does not say when it starts again
	ProcFreeAll    = 23
)

// toRes is from the number of a message to that of its result.
const toRes = ProcTestRes - ProcTestMsg

// Procedure numbers of NSM.
const (
	StatusNull     = 0
	StatusStat     = 1
	StatusMon      = 2
	StatusUnmon    = 3
	StatusUnmonAll = 4
	StatusNotify   = 6
)

// Results of calls (nlm4_stats). Versions 1 and 3 have the first five and Deadlock.
const (
	Granted     = 0
	Denied      = 1
	DeniedRoom  = 2 // a limit is reached (DENIED_NOLOCKS)
	Blocked     = 3
	DeniedGrace = 4
	Deadlock    = 5
	ReadOnly    = 6
	Stale       = 7
	TooBig      = 8
	Failed      = 9
)

// Bounds of what is decoded, in bytes.
const (
	maxObject = 1024 // netobj, and names
	maxKept   = 255  // of an owner, or the name of a host, that is kept
	maxHandle = 64
)
