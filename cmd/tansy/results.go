package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// results is standard output for what a command is asked to print. It keeps the first error of writing, for a result
// that nobody has got is none.
type results struct{ lost atomic.Pointer[error] }

var stdout = new(results)

// Write implements io.Writer.
func (r *results) Write(p []byte) (int, error) {
	n, err := os.Stdout.Write(p)
	if err != nil {
		r.lost.CompareAndSwap(nil, &err)
	}
	return n, err
}

// delivered is the exit code of a command that ends with code, in view of what became of its results.
func (r *results) delivered(name string, code int) int {
	lost := r.lost.Load()
	if lost == nil {
		return code
	}
	fail(name, fmt.Errorf("not all of the result could be printed: %w", *lost))
	if judging[name] {
		return exitUsage
	}
	if code == exitOK {
		return exitFailure
	}
	return code
}

// interrupted is the error of a command that a signal has ended.
type interrupted struct{ by syscall.Signal }

func (i interrupted) Error() string { return "interrupted" }

// untilInterrupted returns a context that ends with SIGINT or SIGTERM; the cause is interrupted then. A second signal
// ends the process.
func untilInterrupted() (ctx context.Context, stop func()) {
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case <-ctx.Done():
		case s := <-signals:
			end(interrupted{s.(syscall.Signal)})
		}
		signal.Stop(signals)
	}()
	return ctx, func() { end(nil) }
}

// unfinishedRun is the error of a run that ended with err after done of total things, in view of why ctx ended.
func unfinishedRun(ctx context.Context, err error, done, total int, one, several string) error {
	if by := new(interrupted); errors.As(context.Cause(ctx), by) {
		return fmt.Errorf("%w after %d of %s", *by, done, count(total, one, several))
	}
	return err
}
