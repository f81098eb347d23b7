//go:build linux

package programs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sqlite has two databases, one of which writes ahead, and the other has a journal to roll back.
type sqlite struct {
	databases   [2]client
	synchronous string
}

func newSqlite(t *testing.T, _ uint64) func() program {
	if _, err := exec.LookPath("sqlite3"); err != nil {
		t.Skip(err)
	}
	// With "full", SQLite does not wait until the name of the journal is gone, and so may roll back after a crash what
	// it has reported.
	return func() program { return &sqlite{synchronous: "extra"} }
}

func (s *sqlite) flags(int) []string { return nil }

func (s *sqlite) String() string {
	return fmt.Sprintf("%d and %d transactions", s.databases[0].done, s.databases[1].done)
}

func database(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("%d.db", i)) }

func (s *sqlite) prepare(dir string) error {
	for i := range s.databases {
		if _, err := output(exec.Command("sqlite3", "-bail", database(dir, i), `
pragma synchronous = extra; create table t(id integer primary key, v, data); create index byvalue on t(v); create table last(n); insert into last values(0)`)); err != nil {
			return err
		}
	}
	return nil
}

// rows is how many rows there are at most.
const rows = 200

// step is a transaction, and then says that it is done.
func (s *sqlite) step(n int) string {
	return fmt.Sprintf(`begin; insert into t values(%[1]d, 0, '%[2]s'); update t set v = %[1]d where id %% 7 = %[1]d %% 7;
delete from t where id <= %[1]d - %[3]d; update last set n = %[1]d; commit; select 'done %[1]d';`, n, text(n), rows)
}

// text is some, and never the same.
func text(n int) string { return strings.Repeat(fmt.Sprint(n, "."), n*37%900) }

func (s *sqlite) work(ctx context.Context, dir string, r *rand.Rand, reported func() bool) error {
	modes := [2]string{"wal", []string{"delete", "truncate", "persist"}[r.IntN(3)]}
	var run []func(context.Context) error
	for i, mode := range modes {
		begin := fmt.Sprintf("pragma journal_mode = %s; pragma synchronous = %s; pragma wal_autocheckpoint = 50;\n",
			mode, s.synchronous)
		run = append(run, func(ctx context.Context) error {
			return s.databases[i].run(ctx, exec.Command("sqlite3", "-bail", database(dir, i)), func(n int) string {
				defer func() { begin = "" }()
				return begin + s.step(n)
			}, reported)
		})
	}
	return all(ctx, run...)
}

func (s *sqlite) check(_ context.Context, dir string) error {
	for i := range s.databases {
		out, err := output(exec.Command("sqlite3", "-bail", database(dir, i),
			"pragma integrity_check; select n from last; select id, v, data from t order by id"))
		if err != nil {
			return err
		}
		sound, rest, _ := strings.Cut(out, "\n")
		if sound != "ok" {
			return fmt.Errorf("integrity_check: %s", out)
		}
		count, rest, _ := strings.Cut(rest, "\n")
		var n int
		if _, err := fmt.Sscan(count, &n); err != nil {
			return err
		}
		if err := s.databases[i].found(n); err != nil {
			return fmt.Errorf("database %d: %w", i, err)
		}
		var want strings.Builder
		for id := max(1, n-rows+1); id <= n; id++ {
			fmt.Fprintf(&want, "%d|%d|%s\n", id, n-(n-id)%7, text(id))
		}
		if rest != want.String() {
			return fmt.Errorf("database %d: these are not the rows after transaction %d:\n%s", i, n, rest)
		}
	}
	return nil
}
