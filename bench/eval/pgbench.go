//go:build linux

package eval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"tansy/bench/internal/figures"
	"tansy/bench/internal/rig"
)

// pgbench is PostgreSQL's own benchmark: transactions on four tables, each durable before it is answered.
func pgbench(options) []experiment {
	clients := []int{1, manyUsers}
	var ms []figures.Metric
	for _, n := range clients {
		ms = append(ms, figures.Metric{Name: fmt.Sprintf("transactions, clients: %d", n), Unit: "/s", At: int64(n)})
	}
	return []experiment{{ms, func(ctx context.Context, s *site) (rates []float64, err error) {
		p, err := newPostgres(s.machine)
		if err != nil {
			return nil, err
		}
		data, err := s.prepared("postgres", func(folder string) error { return p.make(ctx, folder) })
		if err != nil {
			return nil, err
		}
		if data, err = s.copied(ctx, data); err != nil {
			return nil, err
		}
		err = p.with(ctx, data, func() error {
			for _, n := range clients {
				rate, err := p.transactions(ctx, n)
				if err != nil {
					return err
				}
				rates = append(rates, rate)
			}
			return nil
		})
		return rates, err
	}}}
}

// scale is how many branches there are, each with 100,000 accounts.
const scale = 4

// postgres is a server that runs as somebody else than root, with a socket on the host.
type postgres struct {
	programs, socket string
	seconds          int // of a measurement: pgbench takes whole ones
	who              syscall.Credential
}

// postgresPrograms is the folder of the latest version that is installed.
func postgresPrograms() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) == 0 {
		return "", errors.New("PostgreSQL is not installed")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

func postgresMissing() error {
	_, err := postgresPrograms()
	if err == nil {
		_, err = user.Lookup("postgres")
	}
	return err
}

func newPostgres(m *machine) (p *postgres, err error) {
	p = &postgres{seconds: int(math.Ceil(2 * m.duration.Seconds()))}
	if p.programs, err = postgresPrograms(); err != nil {
		return nil, err
	}
	other, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(other.Uid)
	gid, _ := strconv.Atoi(other.Gid)
	p.who = syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	p.socket, err = m.prepared("postgres-socket", func(folder string) error { return os.Chown(folder, uid, gid) })
	return p, err
}

func (p *postgres) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(p.programs, name), args...)
	c.Dir = p.socket
	c.Env = append(os.Environ(), "PGHOST="+p.socket, "PGDATABASE=postgres", "PGUSER=postgres", "LC_ALL=C")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &p.who, Setpgid: true}
	return c
}

// make makes the tables, on the host.
func (p *postgres) make(ctx context.Context, data string) error {
	if err := errors.Join(os.Chown(data, int(p.who.Uid), int(p.who.Gid)), os.Chmod(data, 0o700)); err != nil {
		return err
	}
	_, err := rig.Output(p.command(ctx, "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8",
		"--locale=C", "--no-sync"))
	if err != nil {
		return err
	}
	conf, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(conf, "listen_addresses = ''\nautovacuum = off\n")
	if err := errors.Join(err, conf.Close()); err != nil {
		return err
	}
	return p.with(ctx, data, func() error {
		_, err := rig.Output(p.command(ctx, "pgbench", "-i", "-q", "-s", fmt.Sprint(scale)))
		return err
	})
}

// with has a server while something is done.
func (p *postgres) with(ctx context.Context, data string, do func() error) error {
	c := p.command(context.Background(), "postgres", "-D", data, "-k", p.socket)
	said, err := c.StderrPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.Process.Signal(syscall.SIGQUIT) })
	defer stop()
	var text strings.Builder
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		isReady := false
		for lines := bufio.NewScanner(said); lines.Scan(); {
			fmt.Fprintln(&text, lines.Text())
			if !isReady && strings.Contains(lines.Text(), "ready to accept connections") {
				isReady = true
				close(ready)
			}
		}
	}()
	select {
	case <-ready:
		err = do()
		c.Process.Signal(syscall.SIGINT) // ends connections, and makes a checkpoint
	case <-ended:
		err = errors.New("postgres does not start")
	}
	<-ended
	if err := errors.Join(err, c.Wait()); err != nil {
		return fmt.Errorf("%w\n%s", err, &text)
	}
	return nil
}

var transactionsPerSecond = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without`)

// transactions returns how many there were per second.
func (p *postgres) transactions(ctx context.Context, clients int) (float64, error) {
	out, err := rig.Output(p.command(ctx, "pgbench", "-n", "-M", "prepared", "-T", fmt.Sprint(p.seconds),
		"-c", fmt.Sprint(clients), "-j", fmt.Sprint(min(clients, 2))))
	if err != nil {
		return 0, err
	}
	found := transactionsPerSecond.FindStringSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("pgbench says no rate: %s", out)
	}
	return strconv.ParseFloat(found[1], 64)
}
