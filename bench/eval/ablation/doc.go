// Package ablation takes parts of Tansy's design out again, one at a time, to measure what each is worth (bench/eval).
// It does so only in programs that are built with its overlay, and there only what the variable TANSY_ABLATION names.
// The product's own files know nothing of it. Nothing that is proved is changed: what is taken out is Go, or what Go
// tells the proved code.
package ablation

// Names of what can be taken out.
const (
	OneLock       = "one-lock"        // one transaction at a time
	NoGroupCommit = "no-group-commit" // one transaction at a time, durable before the next one begins
	NoOverlap     = "no-overlap"      // the log is not written while blocks are written home
	TwoBarriers   = "two-barriers"    // a record of commit behind a barrier of its own: two for each group
	NoDirect      = "no-direct"       // large new data go through the log, too
	NoCodes       = "no-codes"        // what is read is believed: no tree of codes
)
