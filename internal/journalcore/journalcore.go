// Package journalcore hands the verified journal to the packages of this module that run on it. Package journal itself
// exports nothing that others could not use.
package journalcore

import "tansy/internal/gen/journal/journalm"

// Of returns the verified journal of j, which is a *journal.Journal. Package journal sets it when it is initialized.
var Of func(j any) *journalm.Journal
