package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	volbackup "tansy/offline/backup"
	volcheck "tansy/offline/check"
)

func check() (*flagSet, action) {
	f := newFlags("check", "VOLUME [flags]", `
  tansy check data.img
  tansy check data.img --data   the contents of all files, too
  tansy check /dev/sdb -q       only the exit code and the problems
  tansy check data.img -v       how fragmented the files are, too
  tansy check /backup/data --data
                                the last backup in a folder, and that all files
                                there are as they were written

exit codes:
  0  clean
  1  problems were found: printed are where, what, and the paths of the files
     concerned
  2  it could not be checked: wrong arguments, no volume, in use, or the device
     fails every read; or "clean" could not be printed

The volume is only read. One that is served or mounted on this machine is
checked as it is at one moment, by its own user or root; it goes on to be used,
and what is overwritten meanwhile is kept aside (serve --moment-spill). A folder
with backups, or one of its files, is taken for the volume that it is of. Every
block that is read is checked against the code that the volume has of it: one
that the device cannot read, or that is not what was last written there, is a
problem, and the rest is checked; what cannot be judged without it is printed as
"not checked". Holes of an image are passed over. The contents of files are read
only with --data. The progress goes to standard error, unless -q is given. -v
costs nothing: it counts the runs of blocks, one behind the other on the device,
in which the files lie.
`)
	quiet := f.Bool("q", false, "print nothing but problems")
	data := f.Bool("data", false, "read the contents of all files, and check them, too")
	verbose := f.Bool("v", false, "print how fragmented the files are, too")
	limit := f.Int("max-problems", 1000, "print at most `N` problems")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1)
		if done {
			return code
		}
		if *limit < 0 {
			return misused(f, "--max-problems has to be 0 or more")
		}
		o, clear := volcheck.Options{MaxProblems: *limit, Data: *data}, ""
		if !*quiet {
			p := newProgress(os.Stderr, time.Now)
			o.Progress, clear = p.report, p.clear
		}
		begin := time.Now()
		var files uint64 // of a backup: problems in them
		backup := volbackup.Is(pos[0])
		if backup && *data {
			var err error
			if files, err = checkFiles(pos[0], reporter(o.Progress)); err != nil {
				fail("check", err)
				return exitUsage
			}
		}
		d, err := openToRead(context.Background(), pos[0], warning("check"))
		if errors.Is(err, volbackup.ErrDamaged) {
			fmt.Fprintln(stdout, "backup:", err)
			stdout.conclude("%s: damaged", shown(pos[0]))
			return exitFailure
		}
		if err != nil {
			fail("check", err)
			return exitUsage
		}
		defer d.Close()
		rep, err := volcheck.Volume(d, o)
		fmt.Fprint(os.Stderr, clear)
		for _, p := range rep.Problems {
			fmt.Fprintln(stdout, p)
		}
		if rep.Unlisted > 0 {
			fmt.Fprintln(stdout, count(rep.Unlisted, "more problem", "more problems"))
		}
		for _, s := range rep.Unchecked {
			fmt.Fprintln(stdout, "not checked:", s)
		}
		if err != nil {
			fail("check", fmt.Errorf("%s: %w%s", pos[0], err, adviceFor(d, err)))
			return exitUsage
		}
		verdict, code := judged(&rep, files)
		if !*quiet {
			verdict += "; " + summary(&rep, *data, time.Since(begin))
		}
		switch {
		case code == exitOK:
		case backup:
			verdict += "; tansy backup --list prints what other backups there are"
		default:
			verdict += fmt.Sprintf("; tansy repair %s says what can be done", quoted(pos[0]))
		}
		if !*quiet || code != exitOK {
			stdout.conclude("%s: %s", shown(pos[0]), verdict)
		}
		if *verbose {
			fmt.Fprintf(stdout, "%s: fragmentation: %s\n", shown(pos[0]), rep.Placement)
		}
		return code
	}
}

// judged is the verdict on a volume, and its exit code. files are problems in the files of a backup.
func judged(rep *volcheck.Report, files uint64) (verdict string, code int) {
	verdict, code = "clean", exitOK
	if !rep.Clean() {
		verdict = "damaged, " + count(uint64(len(rep.Problems))+rep.Unlisted, "problem", "problems")
		if rep.Files > 0 {
			verdict += " in " + count(rep.Files, "file", "files")
		}
		if rep.Unreadable > 0 {
			verdict += ", " + count(rep.Unreadable, "unreadable block", "unreadable blocks")
		}
		if rep.Damaged > 0 {
			verdict += ", " + count(rep.Damaged, "block that is not", "blocks that are not") +
				" what was last written there"
		}
		code = exitFailure
	}
	if files > 0 {
		verdict += ", and " + count(files, "problem", "problems") + " in the files of the backup"
		code = exitFailure
	}
	return verdict, code
}

// reporter is what tells of progress, or nothing.
func reporter(report func(pass string, done, total uint64)) func(pass string, done, total uint64) {
	if report == nil {
		return func(string, uint64, uint64) {}
	}
	return report
}

// summary says what there is on a volume. data: the contents of files were read.
func summary(rep *volcheck.Report, data bool, took time.Duration) string {
	contents := "contents of files not read (--data reads them)"
	if data {
		contents = count(rep.DataChecked, "block", "blocks") + " of contents read"
	}
	said := fmt.Sprintf("%s, %s with %s; %d of %d data blocks in use, space of %s waiting to be freed, "+
		"%s in the log; %s; %.1f s",
		count(rep.Others, "file", "files"), count(rep.Directories, "directory", "directories"),
		count(rep.Entries, "entry", "entries"), rep.Blocks, rep.DataBlocks, count(rep.Orphans, "file", "files"),
		count(rep.Replayed, "block", "blocks"), contents, took.Seconds())
	if rep.Xattrs > 0 {
		said += "; " + count(rep.Xattrs, "file", "files") + " with extended attributes"
	}
	if rep.Leftovers > 0 {
		said += "; " + count(rep.Leftovers, "block", "blocks") +
			" with extended attributes of removed files, which tansy repair frees"
	}
	if rep.Kept > 0 {
		said += "; " + count(rep.Kept,
			"file that a mount had open, which goes when the volume is opened, unless it has a name",
			"files that a mount had open, which go when the volume is opened, unless they have a name")
	}
	return said
}

// count words a number of things: one is the word for one of them, several the word for more.
func count[N int | int64 | uint64](n N, one, several string) string {
	if n == 1 {
		several = one
	}
	return fmt.Sprintf("%d %s", n, several)
}
