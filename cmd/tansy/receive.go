package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	volbackup "tansy/offline/backup"
)

func receive() (*flagSet, action) {
	f := newFlags("receive", "FOLDER [flags]", `
  ssh host tansy receive --have /backup/data |
      tansy backup data.img - --have - | ssh host tansy receive /backup/data
                                what that folder has not, to another machine;
                                the same line again goes on where it was
                                interrupted
  tansy receive --have /backup/data > have
                                what there is, for backup --have have

exit codes:
  0  a backup came, and is durable; or what there is, is printed
  1  failed, and all backups are as they were; or the backup came, and some
     blocks of the volume were damaged when it was sent, or others could not be
     taken away (--keep)
  2  wrong arguments
  129, 130, 143
     interrupted by SIGHUP, SIGINT (Ctrl-C), or SIGTERM: what is left is said

What comes through standard input becomes a file of the folder, which lists and
restores as others do. Each piece is compared with its checksums before it is
written. What came before an interruption is kept, beside the backups, in files
that end in .backup.part; --have reads all of it, and what the backups have, and
prints what is as it was written: what is sent leaves that out, by pieces of
1 MiB. When all is there, one backup is made of it.
`)
	have := f.Bool("have", false, "print what there is, for backup --have, and receive nothing")
	var keep keeping
	f.Var(&keep, "keep", keepUsage)
	quiet := f.Bool("q", false, "print nothing but problems")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1)
		if done {
			return code
		}
		if *have && keep.text != "" {
			return misused(f, "--have receives nothing: leave --keep out")
		}
		ctx, stop := untilInterrupted()
		defer stop()
		report := func(string, uint64, uint64) {}
		if !*quiet {
			p := newProgress(os.Stderr, time.Now)
			report = p.report
			defer func() { fmt.Fprint(os.Stderr, p.clear) }()
		}
		if *have {
			return tellHave(ctx, pos[0], report)
		}
		return takeIn(ctx, pos[0], &keep, *quiet, report)
	}
}

// tellHave prints what a folder has.
func tellHave(ctx context.Context, folder string, report func(string, uint64, uint64)) int {
	if toTerminal() {
		return fail("receive", wrongArgument{errors.New("--have goes to a pipe or a file, and not to a terminal")})
	}
	h, err := volbackup.HaveOf(ctx, folder, func(done, total uint64) { report("have", done, total) })
	if err == nil {
		_, err = h.WriteTo(stdout)
	}
	if err != nil {
		return fail("receive", err)
	}
	return exitOK
}

// takeIn makes a backup of what comes.
func takeIn(ctx context.Context, folder string, keep *keeping, quiet bool,
	report func(string, uint64, uint64)) int {
	path, got, err := volbackup.Receive(ctx, folder, standardInput(ctx),
		func(bytes uint64) { report("received "+about(bytes), 0, 0) },
		func(x *volbackup.Folder) error { return keep.prune(ctx, x, quiet) })
	if got.Whole && err != nil {
		defer fail("receive", leftOfPrune(err))
	} else if err != nil {
		if by := new(interrupted); errors.As(err, by) { // which the end of the input is because of
			err = *by
		}
		switch {
		case got.Kept:
			err = fmt.Errorf("%w: of what came, %s, the whole pieces are kept: tansy receive --have %s tells of them, and "+
				"backup --have leaves them out", err, about(got.Bytes), quoted(folder))
		case got.Bytes > 0:
			err = fmt.Errorf("%w: too little came to go on with: nothing of it is left", err)
		}
		return fail("receive", err)
	}
	line, code := fmt.Sprintf("%s: received %s", shown(path), about(got.Bytes)), exitOK
	if got.Parts > 0 {
		line += ", and put together with " + count(got.Parts, "earlier part", "earlier parts")
	}
	if got.Damaged > 0 {
		line += fmt.Sprintf("; %s of the volume damaged when sent", count(got.Damaged, "block was", "blocks were"))
		code = exitFailure
	}
	if err != nil {
		code = exitFailure
	}
	if !quiet || code != exitOK {
		stdout.conclude("%s", line)
	}
	return code
}

// standardInput is what comes from there. A read of it ends with ctx.
func standardInput(ctx context.Context) io.Reader {
	in, out := io.Pipe()
	context.AfterFunc(ctx, func() { out.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(out, os.Stdin)
		out.CloseWithError(err)
	}()
	return in
}

// haveIn reads what tansy receive --have has printed, from a file or standard input (-).
func haveIn(ctx context.Context, from string) (h *volbackup.Have, err error) {
	in := io.Reader(nil)
	if from == "-" {
		in = standardInput(ctx)
	} else {
		f, err := os.Open(from)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	if h, err = volbackup.ReadHave(in); err != nil {
		return nil, fmt.Errorf("--have %s: %w", from, err)
	}
	return h, nil
}
