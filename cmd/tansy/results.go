package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// results is standard output for what a command is asked to print. It keeps the first error of writing, for a result
// that nobody has got is none.
type results struct {
	lost atomic.Pointer[error]

	mu       sync.Mutex
	outcomes []string // what the error says as well
}

var stdout = new(results)

// Write implements io.Writer.
func (r *results) Write(p []byte) (int, error) {
	n, err := os.Stdout.Write(p)
	if err != nil {
		r.lost.CompareAndSwap(nil, &err)
	}
	return n, err
}

// note keeps what a command has done or found, which the error says if a result cannot be printed.
func (r *results) note(outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes = append(r.outcomes, outcome)
}

// conclude prints a line that says what a command has done or found, and keeps it as note does.
func (r *results) conclude(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	r.note(line)
	fmt.Fprintln(r, line)
}

// noted are the outcomes that were kept, which it forgets.
func (r *results) noted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.outcomes
	r.outcomes = nil
	return all
}

// delivered is the exit code of a command that ends with code, in view of what became of its results. What was found,
// or has failed, stays so.
func (r *results) delivered(name string, code int) int {
	lost, outcomes := r.lost.Load(), r.noted()
	if lost == nil {
		return code
	}
	said := ""
	if len(outcomes) > 0 {
		said = strings.Join(outcomes, "; ") + "; but "
	}
	fail(name, fmt.Errorf("%snot all of the result could be printed: %w", said, *lost))
	switch {
	case code != exitOK:
		return code
	case judging[name]:
		return exitUsage
	}
	return exitFailure
}

// interrupted is the error of a command that a signal has ended.
type interrupted struct{ by syscall.Signal }

func (i interrupted) Error() string { return "interrupted" }

// endings are the signals that end a command: SIGHUP does not, if it is ignored, as nohup(1) has it.
func endings() []os.Signal {
	all := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// untilInterrupted returns a context that ends with a signal of endings; the cause is interrupted then. A second signal
// ends the process.
func untilInterrupted() (ctx context.Context, stop func()) {
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endings()...)
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
