package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
	volbackup "tansy/offline/backup"
)

func backup() (*flagSet, action) {
	f := newFlags("backup", "VOLUME FOLDER|- [flags]", `
  tansy backup data.img /backup/data
                                a file more in that folder: the first time of
                                all that is in use, then of what changed since
  tansy backup data.img /backup/data --full
                                of all that is in use, again
  tansy backup data.img /backup/data --rate 50M
                                50 MiB a second at most
  tansy backup data.img /backup/data --keep daily=7,weekly=4
                                and take away those that are too many then: kept
                                are the last of each of 7 days, and of 4 weeks
  tansy backup data.img - | ssh host tansy restore - copy.img
                                a copy on another machine
  ssh host tansy receive --have /backup/data |
      tansy backup data.img - --have - | ssh host tansy receive /backup/data
                                what that folder there has not, also after this
                                line was interrupted
  tansy backup --list /backup/data
                                what there is

exit codes:
  0  done
  1  failed, and the folder is as it was; or the backup is there, and some
     blocks of the volume are damaged: which files these belong to is printed;
     or it is there, and an earlier one is damaged, or could not be taken away
     (--keep), or not all of this could be printed
  2  wrong arguments
  129, 130, 143
     interrupted by SIGHUP, SIGINT (Ctrl-C), or SIGTERM: what is left is said

The volume is only read. Of one that is served or mounted on this machine, by
the same user or for root, it is what that holds at one moment; it goes on to be
used. Each block is compared with the code that the volume has of it, and each
file of the backup has checksums. A file has its name when it is durable. It
holds the secrets of the volume. tansy restore makes a volume of it; tansy
check, dump, serve and mount --read-only take the folder, or one of its files,
for the volume.
`)
	all := f.Bool("full", false, "store all that is in use, and not what changed since the last backup")
	list := f.Bool("list", false, "print what backups there are in a folder")
	quiet := f.Bool("q", false, "print nothing but problems")
	var keep keeping
	f.Var(&keep, "keep", keepUsage)
	have := f.String("have", "", "to standard output: leave out what tansy receive --have has printed into `FILE`, or - "+
		"for standard input")
	var rate byteSize
	f.Var(&rate, "rate", "write no more than so many bytes a second (default: as fast as it goes; of a volume in use, "+
		"at work for an eighth of the time)")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 2)
		if done {
			return code
		}
		if what := zero(f, "rate"); what != "" {
			return misused(f, what)
		}
		switch {
		case *list && len(pos) == 2:
			return misused(f, "--list takes a folder alone")
		case *list:
			return listBackups(pos[0])
		case len(pos) == 1:
			return misused(f, missingArguments(f, 1))
		case pos[1] == "-" && (*all && *have == "" || given(f, "keep")):
			return misused(f, "--full and --keep are for a folder: what goes to standard output is full without --have")
		case pos[1] != "-" && *have != "":
			return misused(f, "--have is for what goes to standard output, to tansy receive")
		}
		b := backingUp{volume: pos[0], to: pos[1], full: *all, quiet: *quiet, keep: keep, have: *have,
			o: volbackup.Options{Rate: uint64(rate)}}
		ctx, stop := untilInterrupted()
		defer stop()
		defer b.close()
		r, err := b.run(ctx)
		if err != nil {
			return fail("backup", b.left(err))
		}
		code = max(b.tell(r), b.others())
		if err := b.prune(ctx); err != nil {
			return max(code, fail("backup", leftOfPrune(err)))
		}
		return code
	}
}

// keepUsage explains --keep.
const keepUsage = "afterwards take away all but the last backup of each of the last `N` hours, days, weeks, months, " +
	"or years in which there are any, or the last ones: hourly=N, daily=N, weekly=N, monthly=N, yearly=N, last=N, " +
	"several with commas between (default: all stay)"

// keeping is a flag value: which backups are kept.
type keeping struct {
	text string
	keep volbackup.Keep
}

func (k *keeping) String() string { return k.text }

// Set implements flag.Value.
func (k *keeping) Set(text string) (err error) {
	k.text = text
	k.keep, err = volbackup.ParseKeep(text)
	return err
}

// backingUp is a backup that is wanted.
type backingUp struct {
	volume, to  string
	full, quiet bool
	keep        keeping
	have        string // where it says what is left out; "": nowhere
	o           volbackup.Options
	folder      *volbackup.Folder // open until all is done, so that nobody else comes between; nil: standard output
	path        string            // of the file that was made
	begun       time.Time
}

// close is the end.
func (b *backingUp) close() {
	if b.folder != nil {
		b.folder.Close()
	}
}

// run makes the backup.
func (b *backingUp) run(ctx context.Context) (r volbackup.Report, err error) {
	b.begun = time.Now()
	if b.have != "" { // it comes when all that is there was read: only then the moment is taken
		h, err := haveIn(ctx, b.have)
		if err != nil {
			return r, err
		}
		if b.o.Number = h.Number + 1; !b.full {
			b.o.Have = h
		}
	}
	d, err := openToRead(ctx, b.volume, warning("backup"))
	if err != nil {
		return r, err
	}
	defer d.Close()
	if m, served := d.(atMoment); served {
		b.o.When = m.When
		b.o.Gentle = true
	}
	rest, err := tansyfs.AtRest(d, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return r, fmt.Errorf("%s: %w%s", b.volume, err, adviceFor(d, err))
	}
	if !b.quiet {
		p := newProgress(os.Stderr, time.Now)
		b.o.Progress = func(done, total uint64) { p.report("backup", done, total) }
		defer func() { fmt.Fprint(os.Stderr, p.clear) }()
	}
	if b.to == "-" {
		if toTerminal() {
			return r, wrongArgument{errors.New("a backup goes to a pipe or a file, and not to a terminal")}
		}
		return volbackup.Write(ctx, stdout, rest, nil, b.o)
	}
	if b.folder, err = volbackup.OpenFolder(b.to); err != nil {
		return r, err
	}
	b.path, r, err = b.folder.Backup(ctx, rest, b.full, b.o)
	return r, err
}

// toTerminal tells whether standard output is a terminal.
func toTerminal() bool {
	st, err := os.Stdout.Stat()
	if err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(st, null)
}

// left adds to an error what there is after an interruption.
func (b *backingUp) left(err error) error {
	if by := new(interrupted); errors.As(err, by) && b.to != "-" {
		return fmt.Errorf("%w: %s is as it was", *by, shown(b.to))
	}
	if errors.Is(err, volbackup.ErrOtherVolume) && b.to == "-" {
		return fmt.Errorf("%w: send it to another folder; one has the backups of one volume", err)
	}
	if errors.Is(err, volbackup.ErrOtherVolume) {
		return fmt.Errorf("%w: give another folder; one has the backups of one volume", err)
	}
	return err
}

// others says what is damaged of the other backups in the folder, and returns the exit code.
func (b *backingUp) others() (code int) {
	if b.to == "-" {
		return exitOK
	}
	all, err := volbackup.List(b.to)
	if err != nil {
		return fail("backup", fmt.Errorf("the backup is made, but what else there is cannot be listed: %w", err))
	}
	for _, l := range all {
		if err := cmp.Or(l.Err, l.Flaw); err != nil {
			fmt.Fprintln(stdout, err)
			code = exitFailure
		}
	}
	return code
}

// prune takes away what is not kept.
func (b *backingUp) prune(ctx context.Context) error { return b.keep.prune(ctx, b.folder, b.quiet) }

// prune takes away what is not kept of a folder.
func (k *keeping) prune(ctx context.Context, folder *volbackup.Folder, quiet bool) error {
	if k.text == "" {
		return nil
	}
	var report func(done, total uint64)
	if !quiet {
		p := newProgress(os.Stderr, time.Now)
		report = func(done, total uint64) { p.report("keep", done, total) }
		defer func() { fmt.Fprint(os.Stderr, p.clear) }()
	}
	p, err := folder.Prune(ctx, k.keep, report)
	if !quiet {
		for _, path := range p.Gone {
			fmt.Fprintf(stdout, "%s: not kept\n", shown(path))
		}
		for _, path := range p.Base {
			fmt.Fprintf(stdout, "%s: not kept, but what the others add to\n", shown(path))
		}
	}
	return err
}

// leftOfPrune adds to an error what there is after an interruption.
func leftOfPrune(err error) error {
	if by := new(interrupted); errors.As(err, by) {
		return fmt.Errorf("%w: the backup is made, and all that are to be kept are whole; some others are there yet", *by)
	}
	return fmt.Errorf("the backup is made, but: %w", err)
}

// tell says what was done, and what is damaged, and returns the exit code. Where the backup goes to standard output the
// rest goes to standard error.
func (b *backingUp) tell(r volbackup.Report) int {
	said := fmt.Sprintf("%s, %s in %.1f s", count(r.Stored, "block", "blocks"), about(r.Bytes),
		time.Since(b.begun).Seconds())
	kind := "full"
	switch {
	case r.Full():
	case b.to == "-":
		kind = "what is not there"
	default:
		kind = "what changed since the last one"
	}
	out, name := io.Writer(stdout), b.path
	if b.to == "-" {
		out, name = os.Stderr, "standard output"
	}
	line := fmt.Sprintf("%s: backed up to %s: %s, %s", shown(b.volume), shown(name), kind, said)
	code := exitOK
	if n := uint64(len(r.Damaged)) + r.More; n > 0 {
		code = exitFailure
		for _, d := range r.Damaged {
			fmt.Fprintf(out, "block %d: %v\n", d.Block, d.Err)
		}
		for _, path := range r.Files {
			fmt.Fprintln(out, "damaged:", path)
		}
		if r.Unnamed != nil {
			fmt.Fprintln(out, "which files these belong to cannot be found out:", r.Unnamed)
		}
		line += fmt.Sprintf("; %s of the volume %s damaged, and so in the backup", count(n, "block", "blocks"),
			map[bool]string{true: "is", false: "are"}[n == 1])
	}
	switch {
	case b.quiet && code == exitOK:
	case b.to == "-":
		fmt.Fprintln(out, line)
	default:
		stdout.conclude("%s", line)
	}
	return code
}

// listBackups prints what there is in a folder.
func listBackups(folder string) int {
	all, err := volbackup.List(folder)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: %w", folder, volbackup.ErrNotBackup)
	}
	if err != nil {
		return fail("backup", err)
	}
	code := exitOK
	for _, l := range all {
		if err := cmp.Or(l.Err, l.Flaw); err != nil {
			code = exitFailure
			fmt.Fprintf(stdout, "%v\n", err)
		}
		if l.Err != nil {
			continue
		}
		kind := "full"
		if !l.Full() {
			kind = "added"
		}
		fmt.Fprintf(stdout, "%s  %-5s  %8s  %s\n", l.When.UTC().Format("2006-01-02 15:04:05Z"), kind, about(l.Bytes),
			shown(l.Path))
	}
	return code
}

// backupDevice is a backup as the device of its volume. It is only read.
type backupDevice struct {
	disk.Disk
	path string
}

// openBackup opens a backup in the place of a volume.
func openBackup(path string, o disk.FileOptions) (device, error) {
	if !o.ReadOnly {
		return nil, fmt.Errorf("%s is a backup, which is only read: tansy restore %s VOLUME makes a volume of it", path,
			quoted(path))
	}
	c, err := volbackup.Open(path)
	if err != nil {
		return nil, err
	}
	for _, flaw := range c.Flaws() {
		if o.Warn != nil {
			o.Warn(flaw)
		}
	}
	d, err := c.Device()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return backupDevice{d, path}, nil
}

// Path implements device.
func (b backupDevice) Path() string { return b.path }

// Check implements device. The files stay open, whatever becomes of their names.
func (b backupDevice) Check() error { return nil }

// Discards implements device.
func (b backupDevice) Discards() bool { return false }

// NextData implements disk.Holes.
func (b backupDevice) NextData(a uint64) (uint64, error) { return disk.NextData(b.Disk, a) }
