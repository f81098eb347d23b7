// Package exports says who may do what with a volume: it reads a file in the syntax of
// exports(5) and finds the rule for a client.
//
// An Export is a directory of the volume, the root or one below it, with its Clients. A
// client is an address, a network, a host name, a pattern of host names, a name in a certificate, or "*"; the Rule
// behind it says whether it may change files, from which ports it calls, and who its users
// are. A Table holds the exports of one file and answers which rules a peer has (Rules); a
// Policy is the Table that counts now, so that a file can be read again while calls go on.
//
// Syntax, as far as it is understood; everything else is an error that says where:
//
//	file    = { line }                      "#" starts a comment, "\" at the end of a line joins the next
//	line    = path { "-" options | client [ "(" options ")" ] }
//	path    = from "/", in double quotes if it has spaces; "\040" is the byte with that octal number
//	options = option { "," option }         "-" options are the defaults of the clients behind them
//
// Differences from exports(5): a line without clients, and options without a client
// ("host (rw)"), which mean everybody there, are errors. Options of exports(5) that change nothing here are accepted
// with a warning, as long as nobody gets less than they ask for (idleOption); all others are errors.
package exports

import (
	"fmt"
	"strings"
	"sync/atomic"

	"tansy/fs"
)

// Export is a directory with those who may mount it.
type Export struct {
	Path    string // in the volume, clean: "/" or "/a/b"
	Clients []Client
	Line    int // where it is in its file first, from 1; 0: in none
}

// Rule is what a client may do.
type Rule struct {
	ReadOnly  bool
	Secure    bool // calls must come from a port below 1024
	fs.Squash      // who its users are

	// Transports are those over which calls may come; 0: it is not said, and Default says it.
	Transports Transports
}

// Anonymous is the number of the user and the group "nobody".
const Anonymous = 65534

// strict is the rule of a client without options, as in exports(5).
var strict = Rule{ReadOnly: true, Secure: true, Squash: fs.Squash{Root: true, AnonUID: Anonymous, AnonGID: Anonymous}}

// String is the rule as options.
func (r *Rule) String() string {
	pick := func(b bool, yes, no string) string {
		if b {
			return yes
		}
		return no
	}
	said := fmt.Sprintf("%s,%s,%s,%s,sync,anonuid=%d,anongid=%d",
		pick(r.ReadOnly, "ro", "rw"), pick(r.Root, "root_squash", "no_root_squash"),
		pick(r.All, "all_squash", "no_all_squash"), pick(r.Secure, "secure", "insecure"), r.AnonUID, r.AnonGID)
	if r.Transports != 0 {
		said += ",xprtsec=" + r.Transports.String()
	}
	return said
}

// Everyone is the one export "/" with one rule for all.
func Everyone(r Rule) []Export {
	return []Export{{Path: "/", Clients: []Client{{Name: "*", kind: anybody, Rule: r}}}}
}

// Open is the rule of a server without a file of exports: everybody may do everything, and nobody is squashed.
func Open() Rule { return Rule{Squash: fs.Squash{AnonUID: Anonymous, AnonGID: Anonymous}} }

// Policy is the table that counts. It may be used concurrently.
type Policy struct{ table atomic.Pointer[Table] }

// NewPolicy makes a policy of a table.
func NewPolicy(t *Table) *Policy {
	p := new(Policy)
	p.Set(t)
	return p
}

// Table is the table that counts now.
func (p *Policy) Table() *Table { return p.table.Load() }

// Set makes another table count. Calls under way may go on by the old one.
func (p *Policy) Set(t *Table) { p.table.Store(t) }

// Covers tells whether place is path, or lies below it. place is a clean path.
func Covers(path, place string) bool {
	return path == "/" || place == path || strings.HasPrefix(place, path+"/")
}
