package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
	volbackup "tansy/offline/backup"
	volcheck "tansy/offline/check"
)

func restore() (*flagSet, action) {
	f := newFlags("restore", "BACKUP|- VOLUME [flags]", `
  tansy restore /backup/data data.img
                                the last backup in the folder, as a new image
  tansy restore /backup/data/2026-11-30T04-45-12Z.backup data.img
                                an earlier one
  tansy restore /backup/data data.img --size 200G
                                with more room, if the volume can grow
  tansy restore /backup/data small.img --size 8G --files
                                the files, as a new volume of any size that
                                holds them, also a smaller one
  tansy restore /backup/data /dev/sdb --force
                                on a device; what was on it is lost
  ssh host tansy backup data.img - | tansy restore - data.img
                                from another machine

exit codes:
  0  restored
  1  failed; or the volume is there, and some of it is damaged, as the backup
     is: which files is printed, and with --files these are left out; or it is
     there, and that could not be printed
  2  wrong arguments, such as a size that is too small
  129, 130, 143
     interrupted by SIGHUP, SIGINT (Ctrl-C), or SIGTERM: what is left is said

The volume gets its superblock last: an interrupted run leaves none. Then all of
it is read and checked, unless --no-check is given. It is the volume that was
backed up, with its UUID: clients may keep it mounted, but those that have files
of later days open may find others in their place, and should mount it anew. Do
not serve both.

With --files it is a new volume, with a UUID and file handles of its own, that
clients have to mount anew, and with the files as they were: owners, modes, all
times, hard links, holes, flags, and extended attributes.
`)
	var size byteSize
	f.Var(&size, "size", "size of a new image file (default: what the volume had)")
	force := f.Bool("force", false, "make the volume even where something exists already")
	files := f.Bool("files", false, "make a new volume, and copy the files into it")
	unchecked := f.Bool("no-check", false, "do not check the volume afterwards")
	quiet := f.Bool("q", false, "print nothing but problems")
	ignoreFstab := f.Bool("ignore-fstab", false, ignoreFstabUsage)
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 2, 2)
		if done {
			return code
		}
		if err := strange(pos[1]); err != nil {
			return misused(f, err.Error())
		}
		if what := zero(f, "size"); what != "" {
			return misused(f, what)
		}
		if *files && pos[0] == "-" {
			return misused(f, "--files takes a folder or a file, and not standard input: keep that first (tansy receive)")
		}
		r := restoring{from: pos[0], to: pos[1], files: *files, force: *force, check: !*unchecked, quiet: *quiet,
			image: image{size: uint64(size), ignoreFstab: *ignoreFstab, warn: warning("restore")}}
		ctx, stop := untilInterrupted()
		defer stop()
		begun := time.Now()
		if err := r.run(ctx); err != nil {
			return fail("restore", r.left(err))
		}
		return r.tell(time.Since(begun))
	}
}

// restoring is a volume that is to be restored.
type restoring struct {
	from, to            string
	files               bool // and not blocks
	force, check, quiet bool
	image               image

	isNew, wrote bool
	lost         uint64
	copied       volbackup.Files
	grown        tansyfs.Growth
	report       volcheck.Report
}

// open opens what is restored. A read of standard input ends with ctx.
func (r *restoring) open(ctx context.Context) (b volbackup.Backup, end func() error, err error) {
	if r.from == "-" {
		s, err := volbackup.NewStream(standardInput(ctx))
		if err != nil {
			return nil, nil, fmt.Errorf("standard input: %w", err)
		}
		return s, func() error { return nil }, nil
	}
	c, err := volbackup.Open(r.from)
	if err != nil {
		return nil, nil, err
	}
	for _, flaw := range c.Flaws() {
		r.image.warn(flaw)
	}
	return c, c.Close, nil
}

// run restores the volume.
func (r *restoring) run(ctx context.Context) error {
	b, end, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer end()
	var p *progress
	report := func(string, uint64, uint64) {}
	if !r.quiet {
		p = newProgress(os.Stderr, time.Now)
		defer func() { fmt.Fprint(os.Stderr, p.clear) }()
		report = p.report
	}
	fill := func(d device, zeroed bool) error {
		if c, ok := b.(*volbackup.Chain); ok && r.files {
			return r.fillFiles(ctx, d, c, zeroed, report)
		}
		r.wrote = d.Size() >= b.Info().Room
		o := volbackup.RestoreOptions{Zeroed: zeroed,
			Progress: func(done, total uint64) { report("restore", done, total) }}
		if r.lost, err = volbackup.Restore(ctx, d, b, o); err != nil {
			return err
		}
		return r.finish(ctx, d, report)
	}
	least := b.Info().Room * disk.BlockSize
	if r.isNew = !remote(r.to) && missing(r.to); !r.isNew {
		return r.enough(r.image.overwrite(r.to, r.force, fill))
	}
	if r.image.size == 0 {
		r.image.size = least
	}
	return r.enough(r.image.makeOf(r.to, func(bytes uint64) error {
		if bytes < least && !r.files {
			return wrongArgument{fmt.Errorf("the volume needs %d bytes: give --size %d, or leave it out; or --files, which "+
				"makes a new volume of any size that holds the files", least, least)}
		}
		return nil
	}, fill))
}

// fillFiles makes a new volume on d with the files of a backup.
func (r *restoring) fillFiles(ctx context.Context, d device, c *volbackup.Chain, zeroed bool,
	report func(string, uint64, uint64)) (err error) {
	r.wrote = true
	r.copied, err = volbackup.RestoreFiles(ctx, d, c, volbackup.FilesOptions{MaxBytes: defaultMost, Zeroed: zeroed,
		Progress: func(done, total uint64) { report("restore", done, total) }})
	if err != nil {
		return err
	}
	return r.finish(ctx, d, report)
}

// enough says what to do about a device that is too small.
func (r *restoring) enough(err error) error {
	if errors.Is(err, volbackup.ErrTooSmall) {
		return wrongArgument{fmt.Errorf("%s: %w", r.to, err)}
	}
	return err
}

// finish has the volume on d use what is behind it, if it can, and checks it.
func (r *restoring) finish(ctx context.Context, d device, report func(string, uint64, uint64)) error {
	var err error
	r.grown, err = tansyfs.Grow(d, tansyfs.GrowOptions{})
	if err != nil && !errors.Is(err, tansyfs.ErrFixedSize) && !errors.Is(err, tansyfs.ErrNoMore) {
		return err
	}
	if !r.check {
		return nil
	}
	o := volcheck.Options{Data: true, Progress: func(pass string, done, total uint64) {
		report("check: "+pass, done, total)
	}}
	r.report, err = volcheck.Volume(readUntil{d, ctx}, o)
	if ctx.Err() != nil { // it is complete, but nobody has seen all of it
		return context.Cause(ctx)
	}
	return err
}

// readUntil is a device of which nothing can be read when a context has ended.
type readUntil struct {
	disk.Disk
	ctx context.Context
}

// ReadAt implements disk.Disk.
func (d readUntil) ReadAt(a uint64, bufs [][]byte) error {
	if d.ctx.Err() != nil {
		return &disk.Error{Op: "read", Block: a, Err: context.Cause(d.ctx)}
	}
	return d.Disk.ReadAt(a, bufs)
}

// NextData implements disk.Holes.
func (d readUntil) NextData(a uint64) (uint64, error) {
	if d.ctx.Err() != nil {
		return 0, &disk.Error{Op: "read", Block: a, Err: context.Cause(d.ctx)}
	}
	return disk.NextData(d.Disk, a)
}

// left adds to an error what there is after an interruption.
func (r *restoring) left(err error) error {
	by := new(interrupted)
	if !errors.As(err, by) {
		return err
	}
	switch {
	case r.isNew:
		return fmt.Errorf("%w: %s is not made, and nothing of it is left", *by, shown(r.to))
	case r.wrote:
		return fmt.Errorf("%w: what %s held is lost: restore it again", *by, shown(r.to))
	}
	return fmt.Errorf("%w: %s is as it was", *by, shown(r.to))
}

// tell says what was done, and what is damaged, and returns the exit code.
func (r *restoring) tell(took time.Duration) int {
	for _, p := range r.report.Problems {
		fmt.Fprintln(stdout, p)
	}
	for _, path := range r.copied.Left {
		fmt.Fprintln(stdout, "damaged, and left out:", path)
	}
	left := uint64(len(r.copied.Left)) + r.copied.More
	line, code := fmt.Sprintf("%s: restored %s from %s in %.1f s", shown(r.to), about(r.grown.After.Bytes),
		shown(r.from), took.Seconds()), exitOK
	switch n := uint64(len(r.report.Problems)) + r.report.Unlisted; {
	case n > 0:
		line += ", damaged, " + count(n, "problem", "problems")
		code = exitFailure
	case left > 0:
		line += ", without " + count(left, "path that is damaged", "paths that are damaged")
		code = exitFailure
	case r.lost > 0:
		line += ", damaged: the backup is not as it was written in " + count(r.lost, "place", "places")
		code = exitFailure
	case r.check:
		line += ", clean"
	default:
		line += ", not checked"
	}
	if r.files {
		line += fmt.Sprintf("; a new volume, with %s in %s", count(r.copied.Files, "file", "files"),
			count(r.copied.Directories, "directory", "directories"))
	}
	if r.grown.After != r.grown.Before {
		line += fmt.Sprintf("; it had %s", about(r.grown.Before.Bytes))
	}
	if !r.quiet || code != exitOK {
		stdout.conclude("%s", line)
	}
	return code
}
