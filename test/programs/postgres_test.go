//go:build linux

package programs

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// postgres is a server with several clients, who do what pgbench does: its tables, its transactions. It runs as
// somebody else than root, and is reached by a socket beside the volume.
type postgres struct {
	programs, made, socket string
	clients                []client
	who                    *syscall.Credential
}

func newPostgres(t *testing.T, _ uint64) func() program {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_amcheck")
	if len(found) == 0 {
		t.Skip("PostgreSQL 14 or later is not installed")
	}
	other, err := user.Lookup("postgres")
	if err != nil {
		other, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(other.Uid)
	gid, _ := strconv.Atoi(other.Gid)
	theirs := func() string {
		dir := folder(t)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	p := postgres{programs: filepath.Dir(found[len(found)-1]), made: theirs(), socket: theirs(),
		who: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	if err := p.make(); err != nil {
		t.Fatal(err)
	}
	return func() program {
		one := p
		one.socket, one.clients = theirs(), make([]client, 3)
		return &one
	}
}

func (p *postgres) flags(int) []string { return nil }

func (p *postgres) String() string {
	n := 0
	for _, c := range p.clients {
		n += c.done
	}
	return fmt.Sprintf("%d transactions", n)
}

func (p *postgres) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(p.programs, name), args...)
	c.Dir = p.socket
	c.Env = append(os.Environ(), "PGHOST="+p.socket, "PGDATABASE=postgres", "LC_ALL=C")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: p.who}
	return c
}

func (p *postgres) psql(args ...string) *exec.Cmd {
	return p.command("psql", append([]string{"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"}, args...)...)
}

// make makes what prepare copies, on the host's file system.
func (p *postgres) make() error {
	data := filepath.Join(p.made, "data")
	if _, err := output(p.command("initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--data-checksums", "--wal-segsize=1", "--no-sync")); err != nil {
		return err
	}
	// Small enough that a short run writes pages, and makes checkpoints.
	f, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "listen_addresses = ''\nshared_buffers = 1MB\nmax_wal_size = 4MB\nmin_wal_size = 2MB\ncheckpoint_timeout = 30s\nmax_connections = 10\ndynamic_shared_memory_type = mmap\n")
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return p.with(context.Background(), data, func() error {
		if _, err := output(p.command("pgbench", "-i", "-q", "-s", "1", "-U", "postgres")); err != nil {
			return err
		}
		_, err := output(p.psql("-U", "postgres", "-c", "create extension amcheck; create index on pgbench_history(filler)"))
		return err
	})
}

func (p *postgres) prepare(dir string) error {
	_, err := output(exec.Command("sh", "-e", "-c", "cp -a "+filepath.Join(p.made, "data")+" "+dir+"; sync "+dir))
	return err
}

// with has a server while something is done. When ctx is done, it is told to stop at once.
func (p *postgres) with(ctx context.Context, data string, do func() error) error {
	os.Remove(filepath.Join(data, "postmaster.pid")) // names a process that ended in the crash, and perhaps another one now
	c := p.command("postgres", "-D", data, "-k", p.socket)
	said, err := c.StderrPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.Process.Signal(syscall.SIGQUIT) })
	defer stop()
	var text bytes.Buffer
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		once := ready
		for lines := bufio.NewScanner(said); lines.Scan(); {
			fmt.Fprintln(&text, lines.Text())
			if once != nil && strings.Contains(lines.Text(), "ready to accept connections") {
				close(once)
				once = nil
			}
		}
	}()
	select {
	case <-ready:
		err = do()
		if err == nil {
			c.Process.Signal(syscall.SIGINT) // ends connections, and makes a checkpoint
		} else {
			c.Process.Signal(syscall.SIGQUIT)
		}
	case <-ended:
	}
	<-ended
	if why := c.Wait(); err == nil && why != nil {
		err = why
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, &text)
	}
	return err
}

// A transfer is what a transaction of pgbench does.
type transfer struct{ account, teller, branch, delta int }

func transferred(client, n int) transfer {
	r := rand.New(rand.NewPCG(uint64(client), uint64(n)))
	return transfer{1 + r.IntN(100_000), 1 + r.IntN(10), 1, r.IntN(10_001) - 5000}
}

func (p *postgres) step(client, n int) string {
	t := transferred(client, n)
	script := fmt.Sprintf(`begin; update pgbench_accounts set abalance = abalance + %[1]d where aid = %[2]d; select abalance from pgbench_accounts where aid = %[2]d;
update pgbench_tellers set tbalance = tbalance + %[1]d where tid = %[3]d; update pgbench_branches set bbalance = bbalance + %[1]d where bid = %[4]d;
insert into pgbench_history(tid, bid, aid, delta, mtime, filler) values (%[3]d, %[4]d, %[2]d, %[1]d, current_timestamp, '%[5]d.%[6]d'); commit;
`, t.delta, t.account, t.teller, t.branch, client, n)
	switch {
	case n%31 == 7:
		script += "checkpoint;\n"
	case n%17 == client:
		script += "vacuum pgbench_tellers; vacuum pgbench_branches;\n"
	}
	return script + fmt.Sprintf("select 'done %d';", n)
}

func (p *postgres) work(ctx context.Context, dir string, _ *rand.Rand, reported func() bool) error {
	return p.with(ctx, filepath.Join(dir, "data"), func() error {
		var run []func(context.Context) error
		for i := range p.clients {
			run = append(run, func(ctx context.Context) error {
				return p.clients[i].run(ctx, p.psql("-U", "postgres"), func(n int) string { return p.step(i, n) }, reported)
			})
		}
		return all(ctx, run...)
	})
}

func (p *postgres) check(ctx context.Context, dir string) error {
	data := filepath.Join(dir, "data")
	if err := p.with(ctx, data, p.look); err != nil {
		return err
	}
	_, err := output(p.command("pg_checksums", "--check", "-D", data))
	return err
}

func (p *postgres) look() error {
	if _, err := output(p.command("pg_amcheck", "-U", "postgres", "-d", "postgres", "--heapallindexed", "--parent-check")); err != nil {
		return err
	}
	out, err := output(p.psql("-U", "postgres", "-c", "select tid, bid, aid, delta, filler from pgbench_history"))
	if err != nil {
		return err
	}
	found, sum := map[[2]int]transfer{}, 0
	for _, line := range strings.Fields(out) {
		var t transfer
		var of [2]int
		if _, err := fmt.Sscanf(line, "%d|%d|%d|%d|%d.%d", &t.teller, &t.branch, &t.account, &t.delta, &of[0], &of[1]); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		if _, twice := found[of]; twice || t != transferred(of[0], of[1]) {
			return fmt.Errorf("transaction %v is not what was sent, or twice: %v", of, t)
		}
		found[of] = t
		sum += t.delta
	}
	all := 0
	for i := range p.clients {
		n := 0
		for ; found[[2]int{i, n + 1}] != (transfer{}); n++ {
		}
		if err := p.clients[i].found(n); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
		all += n
	}
	if all != len(found) {
		return fmt.Errorf("%d transactions are there, of which %d follow each other", len(found), all)
	}
	out, err = output(p.psql("-U", "postgres", "-c", "select sum(abalance) from pgbench_accounts", "-c",
		"select sum(tbalance) from pgbench_tellers", "-c", "select sum(bbalance) from pgbench_branches"))
	if sums := strings.Fields(out); err == nil && !slices.Equal(sums, slices.Repeat([]string{fmt.Sprint(sum)}, 3)) {
		err = fmt.Errorf("the balances are %v, and the history's %d", sums, sum)
	}
	return err
}
