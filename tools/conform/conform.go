// Package conform checks an NFSv3 server against RFC 1813 (NFS, MOUNT, and NLM,
// whose older versions X/Open C702 describes), RFC 5531 (RPC), and RFC 4506 (XDR).
// It speaks to any server over TCP and sends, besides the ordinary, what a kernel's
// client never sends: handles that are stale, of the wrong length or made up, unions
// with an arm that is not there, calls that end too early, offsets at the end of the
// number range, names that cannot be names, cookies nobody gave out, the same call
// twice. Where the server has NFSACL, its access lists are checked, too.
//
// A Check is one rule with the section it comes from. It passes, or fails, or
// the server differs from it (where the RFC leaves the choice, or only
// recommends), or it is skipped for a reason that is told. Every reply of every
// check is also decoded strictly: lengths, padding, bools, enums, and that
// nothing follows it.
//
// The package shares no code with Tansy's server.
package conform

import (
	"context"
	"crypto/tls"
	"fmt"
	"regexp"
	"time"
)

// Level says how much a rule binds.
type Level string

const (
	// Must: the RFC states it, or a server that breaks it loses or leaks data or hangs its clients.
	Must Level = "must"
	// Should: the RFC recommends it or leaves a choice, or it is what Unix clients count on.
	Should Level = "should"
)

// Outcome is the result of a check.
type Outcome string

const (
	Pass   Outcome = "pass"
	Fail   Outcome = "fail"   // a rule at level Must is broken
	Differ Outcome = "differ" // a rule at level Should is not followed
	Skip   Outcome = "skip"   // the server cannot do what the check needs
)

// Check is one rule.
type Check struct {
	Group   string `json:"group"` // a procedure, in lower case, or what the rule is about
	Name    string `json:"name"`
	Section string `json:"section"` // of which RFC, of X/Open C702, or whose rule it is that no standard has
	Level   Level  `json:"level"`
	Expect  string `json:"expect"` // the rule in one sentence

	run func(*T)
}

// ID is what --run matches: group/name.
func (c *Check) ID() string { return c.Group + "/" + c.Name }

// Result is the outcome of one check.
type Result struct {
	Check
	Outcome Outcome  `json:"outcome"`
	Sent    []string `json:"sent,omitempty"` // the last calls, of a check that did not pass
	Want    string   `json:"want,omitempty"`
	Got     string   `json:"got,omitempty"`
	Reason  string   `json:"reason,omitempty"` // why it was skipped
}

// Report is the outcome of a run.
type Report struct {
	Server  string   `json:"server"`
	Export  string   `json:"export"`
	Results []Result `json:"results"`
	// Left is what could not be cleaned up, empty if nothing.
	Left string `json:"left,omitempty"`
}

// Config says what to check.
type Config struct {
	Addr      string // host:port of NFS
	MountAddr string // host:port of MOUNT, default Addr
	LockAddr  string // host:port of NLM, default Addr if it is there, and else what the server's port mapper says

	// CallbackPort is where the server looks for the port mapper of a client that it has to call, default 111. Checks
	// of such calls listen there, at the address that the server sees.
	CallbackPort uint16

	// TLS, if not nil, is how connections to Addr are protected (RFC 9289). A server that refuses is not checked.
	TLS    *tls.Config
	Export string // path to mount, default "/"

	// Run selects checks by ID; nil selects all.
	Run *regexp.Regexp
	// Timeout is for one reply, default 10 s.
	Timeout time.Duration
	// Progress, if not nil, is told each result as it comes.
	Progress func(done, total int, r *Result)
}

// Checks lists all checks in the order in which they run.
func Checks() []Check {
	var all []Check
	for _, g := range [][]Check{
		recordChecks(), brokenRecordChecks(),
		callChecks(), callMessageChecks(), callOrderChecks(),
		credChecks(), credLimitChecks(), credNoneChecks(),
		truncatedChecks(), argsChecks(), paddingChecks(),
		mountChecks(), mountBelowChecks(), mountPathChecks(), mountListChecks(), nullChecks(),
		staleChecks(), handleChecks(), handleLifeChecks(), getattrChecks(),
		setattrChecks(), setattrSizeChecks(), setattrTimeChecks(), setattrGuardChecks(), setattrPermChecks(),
		setattrByOthersChecks(),
		lookupChecks(), lookupNameChecks(), lookupPermChecks(),
		accessChecks(), accessDirectoryChecks(), readlinkChecks(),
		readChecks(), readLimitChecks(), readPermChecks(),
		writeChecks(), writeCountChecks(), writeOffsetChecks(), writeLimitChecks(), writeFileChecks(),
		writePermChecks(),
		createChecks(), uncheckedChecks(), createRuleChecks(), exclusiveChecks(), mkdirChecks(),
		symlinkChecks(), mknodChecks(),
		removeChecks(), rmdirChecks(),
		renameChecks(), renameNameChecks(), renamePermChecks(), renameDirChecks(), renameOntoChecks(),
		linkChecks(), linkRuleChecks(),
		readdirChecks(), readdirCookieChecks(), readdirPermChecks(), scanChecks(), manyScanChecks(),
		readdirplusChecks(), readdirplusCountChecks(), readdirplusPermChecks(), fsstatChecks(),
		fsinfoChecks(), pathconfChecks(), commitChecks(),
		wccChecks(), wccDirectoryChecks(), wccRenameChecks(),
		raceChecks(), raceLinkChecks(), raceOrderChecks(),
		lockChecks(), lockRangeChecks(), lockOwnerChecks(), lockRightChecks(), lockFormChecks(), lockVersionChecks(),
		lockWaitChecks(), lockCancelChecks(), lockMessageChecks(),
		shareChecks(), freeAllChecks(), statusMonitorChecks(),
		aclChecks(), aclRightChecks(),
	} {
		all = append(all, g...)
	}
	return all
}

// Run connects to a server, and runs the checks in a new directory of the export, which is removed at the end. The
// error is for a server that cannot be checked at all (UnfitError: there is none), or that goes away for longer than
// the time of a reply. If ctx ends, the checks that were not run are missing from the report.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.MountAddr == "" {
		cfg.MountAddr = cfg.Addr
	}
	if cfg.Export == "" {
		cfg.Export = "/"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	var checks []Check
	for _, c := range Checks() {
		if cfg.Run == nil || cfg.Run.MatchString(c.ID()) {
			checks = append(checks, c)
		}
	}
	rep := &Report{Server: cfg.Addr, Export: cfg.Export, Results: []Result{}}
	if len(checks) == 0 {
		return rep, fmt.Errorf("no check matches %q", cfg.Run)
	}
	if err := fit(cfg); err != nil {
		return rep, err
	}
	s, err := newSession(cfg)
	if err != nil {
		return rep, err
	}
	for i := range checks {
		if ctx.Err() != nil {
			break
		}
		r := s.run(&checks[i])
		gone := s.survived(&r)
		rep.Results = append(rep.Results, r)
		if cfg.Progress != nil {
			cfg.Progress(i+1, len(checks), &r)
		}
		if gone != nil {
			return rep, gone
		}
	}
	rep.Left = s.close()
	return rep, ctx.Err()
}

// group gives checks their group and, where they have none of their own, their section.
func group(name, section string, checks ...Check) []Check {
	for i := range checks {
		checks[i].Group = name
		if checks[i].Section == "" {
			checks[i].Section = section
		}
	}
	return checks
}

func must(name, expect string, run func(*T)) Check {
	return Check{Name: name, Level: Must, Expect: expect, run: run}
}

func should(name, expect string, run func(*T)) Check {
	return Check{Name: name, Level: Should, Expect: expect, run: run}
}

// at names another section than the group's.
func (c Check) at(section string) Check {
	c.Section = section
	return c
}
