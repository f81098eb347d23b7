//go:build linux

package linux

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tansy/bench/internal/rig"
)

const (
	qemu       = "qemu-system-x86_64"
	processors = 2
	memoryMB   = 4096
	diskBytes  = 2 << 30
)

// A machine is a run of QEMU, with files of its own.
type machine struct {
	*image
	options
	dir string
}

// newMachine makes the files: the disk that is measured on, all of its blocks written, and the guest's first file
// system with the programs in it.
func newMachine(ctx context.Context, i *image, o options) (m *machine, err error) {
	m = &machine{image: i, options: o}
	if m.dir, err = os.MkdirTemp(i.dir, "run"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(m.dir)
		}
	}()
	for _, p := range []string{"./cmd/tansy", "./bench"} {
		c := exec.CommandContext(ctx, "go", "build", "-o", m.dir+"/", p)
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		if _, err := rig.Output(c); err != nil {
			return nil, fmt.Errorf("build %s (is this Tansy's folder?): %w", p, err)
		}
	}
	if err := m.archive(); err != nil {
		return nil, err
	}
	return m, rig.Fill(ctx, m.file("disk.img"), diskBytes)
}

func (m *machine) file(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) archive() error {
	a, err := newArchive(m.file("initrd"))
	if err != nil {
		return err
	}
	plan, err := json.Marshal(m.plan)
	if err != nil {
		return err
	}
	for _, f := range []string{"dev", "root", "modules"} {
		a.add(f, folder|0o755, nil)
	}
	a.add("plan", regular|0o644, plan)
	err = errors.Join(a.addFile("init", m.file("bench")), a.addFile("tansy", m.file("tansy")))
	for _, path := range m.modules {
		err = errors.Join(err, a.addFile("modules/"+filepath.Base(path), path))
	}
	return errors.Join(err, a.close())
}

// kernelArguments: no defences against programs in the guest, of which QEMU emulates some at great cost and which
// neither server has more of; and memory is not copied by REP MOVSB, which is the fastest way on the processor that is
// emulated, and the slowest in the emulation.
const kernelArguments = "console=ttyS0 quiet panic=-1 mitigations=off nopti clearcpuid=rep_good,erms,fsrm"

func (m *machine) arguments() []string {
	drive := func(path, more string) string {
		return fmt.Sprintf("file=%s,if=virtio,format=raw,%s", strings.ReplaceAll(path, ",", ",,"), more)
	}
	cpu := "max,erms=off,fsrm=off"
	if strings.HasPrefix(m.accelerator, "kvm") {
		cpu = "host"
	}
	return []string{
		"-machine", "q35", "-accel", m.accelerator, "-cpu", cpu,
		"-smp", fmt.Sprint(processors), "-m", fmt.Sprint(memoryMB),
		"-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot",
		"-kernel", m.vmlinuz(), "-initrd", m.file("initrd"), "-append", kernelArguments,
		"-serial", "file:" + m.file("console"), "-serial", "stdio",
		"-drive", drive(m.root(), "snapshot=on"),
		"-drive", drive(m.file("disk.img"), "cache=none,aio=threads,discard=ignore,detect-zeroes=off"),
	}
}

// A line is what the guest says on its second serial port, in JSON.
type line struct {
	Step   string  `json:",omitempty"` // what it does
	Result *result `json:",omitempty"`
	Error  string  `json:",omitempty"`
	Done   bool    `json:",omitempty"` // all of it
}

// boot runs the guest to its end, and hands on what it says.
func (m *machine) boot(ctx context.Context, take func(line) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := exec.CommandContext(ctx, qemu, m.arguments()...)
	c.SysProcAttr = rig.Apart
	var said bytes.Buffer
	c.Stderr = &said
	lines, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	silent := time.AfterFunc(m.silence, func() { cancel(fmt.Errorf("the guest has said nothing for %v", m.silence)) })
	defer silent.Stop()
	done := false
	for s := bufio.NewScanner(lines); s.Scan(); {
		silent.Reset(m.silence)
		var l line
		if json.Unmarshal(bytes.TrimSpace(s.Bytes()), &l) != nil {
			continue // the firmware's, before the kernel has the port
		}
		if l.Error != "" {
			err = errors.Join(err, errors.New(l.Error))
		} else {
			err = errors.Join(err, take(l))
		}
		if err != nil {
			break
		}
		done = done || l.Done
	}
	if err != nil {
		cancel(err)
	}
	ended := c.Wait()
	if err == nil && !done {
		err = fmt.Errorf("QEMU ended early: %w", errors.Join(context.Cause(ctx), ended))
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s%sthe guest's console is in %s", err, said.Bytes(), m.lastWords(), m.file("console"))
	}
	return err
}

// lastWords are the end of what the guest's kernel has said.
func (m *machine) lastWords() string {
	text, _ := os.ReadFile(m.file("console"))
	all := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), "\r", "")), "\n")
	return strings.Join(all[max(0, len(all)-15):], "\n") + "\n"
}
