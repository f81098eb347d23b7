package backup

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keep says which backups are kept: of each of the last so many periods in which there are any, the last one. Periods
// begin by UTC; weeks on Mondays. The last backup of all is always kept.
type Keep struct {
	rules []rule
}

type rule struct {
	period string
	n      int
}

// periods name the period that a time is in.
var periods = map[string]func(t time.Time) string{
	"last":    func(t time.Time) string { return t.String() },
	"hourly":  func(t time.Time) string { return t.Format("2006-01-02 15") },
	"daily":   func(t time.Time) string { return t.Format(time.DateOnly) },
	"weekly":  func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprint(y, w) },
	"monthly": func(t time.Time) string { return t.Format("2006-01") },
	"yearly":  func(t time.Time) string { return t.Format("2006") },
}

// ParseKeep reads rules such as "daily=7,weekly=4": last, hourly, daily, weekly, monthly, and yearly, each with a
// number from 1 on.
func ParseKeep(text string) (k Keep, err error) {
	for _, word := range strings.Split(text, ",") {
		period, number, _ := strings.Cut(word, "=")
		n, err := strconv.Atoi(number)
		if periods[period] == nil || err != nil || n < 1 {
			return k, fmt.Errorf("%q: give last, hourly, daily, weekly, monthly, or yearly, and how many, such as daily=7",
				word)
		}
		k.rules = append(k.rules, rule{period, n})
	}
	return k, nil
}

// of tells which of some backups are kept, which are in the order in which they were made.
func (k Keep) of(all []Listed) []bool {
	kept := make([]bool, len(all))
	for _, r := range k.rules {
		seen := map[string]bool{}
		for i, l := range slices.Backward(all) {
			period := periods[r.period](l.When.UTC())
			if r.period == "last" {
				period = fmt.Sprint(i)
			}
			if !seen[period] && len(seen) < r.n {
				kept[i], seen[period] = true, true
			}
		}
	}
	if len(all) > 0 {
		kept[len(all)-1] = true
	}
	return kept
}

// baseShare: a full backup that is not kept stays as what others add to, until what is added to it first has more than
// this part of its size. To make one file of both costs as much as both have.
const baseShare = 4

// Pruned says what became of the backups that are not kept.
type Pruned struct {
	Gone []string // files that are gone
	Base []string // files that are not kept, but are what others add to
}

// Prune takes away the backups that k does not keep. One that another adds to is put into that one. All that are kept
// stay whole, whenever it is interrupted. It does nothing if a file of the folder cannot be used. progress, unless nil,
// is called now and then with bytes of the file that is written.
func (x *Folder) Prune(ctx context.Context, k Keep, progress func(done, total uint64)) (p Pruned, err error) {
	all, err := List(x.path)
	if err != nil {
		return p, err
	}
	for _, l := range all {
		if err := cmp.Or(l.Err, l.Flaw); err != nil {
			return p, fmt.Errorf("%w; nothing is taken away from a folder with a file like this", err)
		}
	}
	kept := map[ID]bool{}
	for i, keep := range k.of(all) {
		kept[all[i].ID] = keep
	}
	for _, full := range []bool{false, true} { // what is added first: the bases become as large as they will be
		for _, l := range slices.Clone(all) {
			if kept[l.ID] || l.Full() != full {
				continue
			}
			if ctx.Err() != nil {
				return p, context.Cause(ctx)
			}
			if all, err = x.take(ctx, all, l.ID, progress, &p); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// take takes one of all away, and returns what there is then.
func (x *Folder) take(ctx context.Context, all []Listed, id ID, progress func(done, total uint64),
	p *Pruned) ([]Listed, error) {
	i := slices.IndexFunc(all, func(l Listed) bool { return l.ID == id })
	l := all[i]
	for _, child := range all {
		if child.Parent == id && l.Full() && child.Bytes < l.Bytes/baseShare {
			p.Base = append(p.Base, l.Path)
			return all, nil
		}
	}
	for j, child := range all {
		if child.Parent != id {
			continue
		}
		merged, err := x.merge(ctx, l, child, progress)
		if err == nil { // else the older one stays: it may be all that there is
			err = errors.Join(merged.Err, merged.Flaw)
		}
		if err != nil {
			return all, err
		}
		all[j] = merged
	}
	if err := errors.Join(os.Remove(l.Path), x.lock.Sync()); err != nil {
		return all, err
	}
	p.Gone = append(p.Gone, l.Path)
	return slices.Delete(all, i, i+1), nil
}

// merge puts one backup into another that adds to it, which keeps its name.
func (x *Folder) merge(ctx context.Context, l, child Listed, progress func(done, total uint64)) (Listed, error) {
	older, err := openPath(l.Path)
	if err != nil {
		return child, err
	}
	defer older.close()
	newer, err := openPath(child.Path)
	if err != nil {
		return child, err
	}
	defer newer.close()
	err = x.put(child.Path, os.Rename, func(f *os.File) error {
		out := bufio.NewWriterSize(newPaced(ctx, f, 0, false), atOnce)
		if err := merge(out, older, newer, progress); err != nil {
			return err
		}
		return out.Flush()
	})
	if err != nil {
		return child, fmt.Errorf("%s is not put into %s: %w", l.Path, child.Path, err)
	}
	return listed(child.Path), x.lock.Sync()
}
