//go:build linux

package linux

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A workload has phases that are measured one after the other on one file system.
type workload struct {
	name, about string
	inputs      func(quick bool) error // made once, in the guest's memory; may be nil
	phases      []phase
}

// A phase is one figure: the time that run takes.
type phase struct {
	name   string
	worse  float64                           // than knfsd on data=ordered it may be so many times, to reach the target
	before func(s *server, quick bool) error // takes no time that is measured; may be nil
	run    func(quick bool) error
}

// What the targets are: at most so many times the time of the kernel's server.
const (
	worseThanJournal = 1.15
	worseThanOrdered = 1.15
	worseAtLarge     = 1.3 // than data=ordered, when a large file is written
)

var workloads = []workload{
	{"smallfile", "each process, in a folder of its own, looks up a name that is not there, creates the file, " +
		"writes 100 bytes, fsyncs, removes it", nil, []phase{
		crewPhase("1 process, 80 files", "files", 1, 80),
		crewPhase("4 processes, 30 files each", "files", 4, 30),
	}},
	{"mailbench", "each process writes mails of 2 KiB to a spool, fsyncs, " +
		"renames each into a queue and into a mailbox, reads and removes it", nil, []phase{
		crewPhase("1 process, 60 mails", "mails", 1, 60),
		crewPhase("4 processes, 20 mails each", "mails", 4, 20),
	}},
	{"large", "a file of 128 MiB written in pieces of 64 KiB with an fsync at the end; read twice, each time when " +
		"the client has forgotten it and the server need not have; contents are compared", nil, []phase{
		{"written, fsync", worseAtLarge, nil, writeLarge},
		{"read", worseThanOrdered, forget, readLarge},
		{"read again", worseThanOrdered, forget, readLarge},
	}},
	{"tree", "tar x of 200 files of 0 to 4 KiB in ten folders; " +
		"rm -rf of them when the client has forgotten them", makeArchive, []phase{
		{"tar x", worseThanOrdered, nil, program("tar", "-x", "-f", archivePath, "-C", mountPoint)},
		{"rm -rf", worseThanOrdered, forget, program("rm", "-rf", filepath.Join(mountPoint, treeName))},
	}},
	{"build", "git clone of a repository in the guest's memory with 50 text files and a C program of four, " +
		"and make there", makeRepository, []phase{
		{"git clone", worseThanOrdered, nil, program("git", "clone", "-q", repositoryPath, clonePath)},
		{"make", worseThanOrdered, nil, program("make", "-s", "-C", clonePath)},
	}},
	{"names", "600 empty files in one folder: lstat of each when the client has forgotten them; " +
		"100 of them renamed into another folder and back", nil, []phase{
		{"stat storm", worseThanOrdered, makeNames, statNames},
		{"rename storm", worseThanOrdered, nil, renameNames},
	}},
}

func workloadNames() (names []string) {
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return names
}

func workloadNamed(name string) *workload {
	for i := range workloads {
		if workloads[i].name == name {
			return &workloads[i]
		}
	}
	panic("no workload " + name)
}

func crewPhase(name, kind string, members, steps int) phase {
	c := &crew{kind: kind, members: members, steps: steps, fewer: 5}
	return phase{name, worseThanOrdered, c.ready, c.run}
}

func forget(s *server, _ bool) error { return s.forget() }

// least is how many things are done where it is n else, if -quick is given.
func least(n int, quick bool) int {
	if quick {
		return max(1, n/50)
	}
	return n
}

const (
	pieceBytes = 64 << 10
	pieces     = 2048
)

var largePath = filepath.Join(mountPoint, "large")

// numbered makes a piece the k'th one.
func numbered(piece []byte, k int) []byte {
	for at := 0; at < len(piece); at += 4096 {
		binary.LittleEndian.PutUint64(piece[at:], uint64(k))
	}
	return piece
}

func newPiece() []byte { return bytes.Repeat([]byte("0123456789abcdef"), pieceBytes/16) }

func writeLarge(quick bool) error {
	f, err := os.Create(largePath)
	if err != nil {
		return err
	}
	defer f.Close()
	piece := newPiece()
	for k := range least(pieces, quick) {
		if _, err := f.Write(numbered(piece, k)); err != nil {
			return err
		}
	}
	return errors.Join(f.Sync(), f.Close())
}

func readLarge(quick bool) error {
	f, err := os.Open(largePath)
	if err != nil {
		return err
	}
	defer f.Close()
	piece, got := newPiece(), make([]byte, pieceBytes)
	for k := range least(pieces, quick) {
		if _, err := io.ReadFull(f, got); err != nil {
			return err
		}
		if !bytes.Equal(got, numbered(piece, k)) {
			return fmt.Errorf("piece %d of the large file is not what was written", k)
		}
	}
	return nil
}

const (
	archivePath    = scratch + "/tree.tar"
	treeName       = "tree"
	repositoryPath = scratch + "/repository"
	clonePath      = mountPoint + "/clone"
)

// smallContents of the k'th file are text, of 0 to 4 KiB.
func smallContents(k int) []byte {
	line := fmt.Sprintf("This is file %d, and it has lines like this one.\n", k)
	return []byte(strings.Repeat(line, 80))[:k*1237%4096]
}

func makeArchive(quick bool) error {
	f, err := os.Create(archivePath)
	if err != nil {
		return err
	}
	defer f.Close()
	w := tar.NewWriter(f)
	add := func(name string, kind byte, mode int64, contents []byte) {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Mode: mode, Size: int64(len(contents))}))
		if contents != nil {
			_, e := w.Write(contents)
			err = errors.Join(err, e)
		}
	}
	add(treeName, tar.TypeDir, 0o755, nil)
	for d := range 10 {
		dir := fmt.Sprintf("%s/%d", treeName, d)
		add(dir, tar.TypeDir, 0o755, nil)
		for k := range least(20, quick) {
			add(fmt.Sprintf("%s/file%d", dir, k), tar.TypeReg, 0o644, smallContents(20*d+k))
		}
	}
	return errors.Join(err, w.Close(), f.Close())
}

func makeRepository(quick bool) error {
	if err := os.Mkdir(repositoryPath, 0o755); err != nil {
		return err
	}
	const makefile = "program: main.o a.o b.o c.o\n\tcc -o $@ $^\n\t./$@\n%.o: %.c\n\tcc -c -o $@ $<\n"
	files := map[string][]byte{"Makefile": []byte(makefile)}
	for k := range least(50, quick) {
		files[fmt.Sprintf("text%d", k)] = smallContents(k)
	}
	files["main.c"] = []byte("#include <stdio.h>\nint a99(int); int b99(int); int c99(int);\n" +
		"int main(void) { return a99(1) + b99(2) + c99(3) != 303; }\n")
	for _, name := range []string{"a", "b", "c"} {
		var b strings.Builder
		fmt.Fprintf(&b, "#include <stdio.h>\nint %s0(int x) { return x; }\n", name)
		for k := 1; k < 100; k++ {
			fmt.Fprintf(&b, "int %s%d(int x) { return %[1]s%[3]d(x) + 1; }\n", name, k, k-1)
		}
		files[name+".c"] = []byte(b.String())
	}
	for name, contents := range files {
		if err := os.WriteFile(filepath.Join(repositoryPath, name), contents, 0o644); err != nil {
			return err
		}
	}
	git := func(args ...string) error {
		in := []string{"-C", repositoryPath, "-c", "user.name=bench", "-c", "user.email=bench@localhost"}
		return runProgram("git", append(in, args...)...)
	}
	return errors.Join(git("init", "-q"), git("add", "."), git("commit", "-q", "-m", "Begin"))
}

func namePath(folder string, k int) string {
	return filepath.Join(mountPoint, folder, fmt.Sprintf("name%d", k))
}

const (
	names   = 600
	renamed = 100
)

func makeNames(s *server, quick bool) error {
	for _, folder := range []string{"here", "there"} {
		if err := os.Mkdir(filepath.Join(mountPoint, folder), 0o755); err != nil {
			return err
		}
	}
	for k := range least(names, quick) {
		f, err := os.Create(namePath("here", k))
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return s.forget()
}

func statNames(quick bool) error {
	for k := range least(names, quick) {
		if _, err := os.Lstat(namePath("here", k)); err != nil {
			return err
		}
	}
	return nil
}

func renameNames(quick bool) error {
	for k := range least(renamed, quick) {
		if err := os.Rename(namePath("here", k), namePath("there", k)); err != nil {
			return err
		}
		if err := os.Rename(namePath("there", k), namePath("here", k)); err != nil {
			return err
		}
	}
	return nil
}
