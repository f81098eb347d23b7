package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// saying runs a command in this process, and returns its exit code and what it said on standard output and error. These
// are the process's while it runs, so no test may run beside it: Setenv ends one that may. Parallel tests use tool.
func saying(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	t.Setenv("TANSY_TEST_ALONE", "1")
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	read := func(f *os.File) string {
		defer f.Close()
		text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = open("out"), open("errs")
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	code = run(args)
	return code, read(os.Stdout), read(os.Stderr)
}

// What is wrong with a command line is said in two lines at most, with what would be right, and the exit code is 2.
func TestWrongArguments(t *testing.T) {
	dir := t.TempDir()
	img, full, text := filepath.Join(dir, "v.img"), filepath.Join(dir, "full.img"), filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("a list of things to do\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.img")
	if err := os.Symlink(full, link); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := saying(t, "mkfs", full, "--size", "8 MiB"); code != exitOK {
		t.Fatal(code, errs)
	}
	for _, x := range []struct {
		// With spaces between; V is a volume that does not exist, F one that does, L a link to that, T a text, D a
		// folder, and E nothing.
		args string
		code int
		says string // how standard error begins; a second line tells how to get help, if there is one
	}{
		{"srve", 2, `tansy: there is no command "srve": did you mean serve?`},
		{"unmount", 2, `tansy: there is no command "unmount": did you mean umount?`},
		{"MKFS", 2, `tansy: there is no command "MKFS": did you mean mkfs?`},
		{"bench 127.0.0.1:1 null --plot none/x.svg", 2, "tansy bench: --plot none/x.svg: there is no directory none"},
		{"serve --volume F --listen 0 --exports V", 1, "tansy serve: --exports: open V: no such file or directory: give a"},
		{"fsck", 2, `tansy: there is no command "fsck": did you mean check?`},
		{"xyzzy", 2, `tansy: there is no command "xyzzy"`},
		{"help srve", 2, `tansy: there is no command "srve": did you mean serve?`},
		{"help serve more", 2, `tansy: "more" is one argument too many`},
		{"--volume=V serve", 2, "tansy: a command is missing before --volume=V: tansy serve and tansy grow have it"},
		{"--size", 2, "tansy: a command is missing before --size: tansy serve, tansy mkfs, tansy grow and tansy restore have it"},
		{"--xyzzy", 2, "tansy: a command is missing before --xyzzy"},

		{"snapshot", 2, `tansy: there is no command "snapshot" yet; tansy backup keeps a state of a volume, and tansy`},
		{"shrink F", 2, `tansy: there is no command "shrink" yet; a volume never becomes smaller`},

		{"mkfs", 2, "tansy mkfs: the argument VOLUME is missing"},
		{"mount", 2, "tansy mount: the arguments VOLUME and DIR are missing"},
		{"mount V", 2, "tansy mount: the argument DIR is missing"},
		{"umount", 2, "tansy umount: the argument VOLUME|DIR is missing"},
		{"check", 2, "tansy check: the argument VOLUME is missing"},
		{"repair", 2, "tansy repair: the argument VOLUME is missing"},
		{"trim", 2, "tansy trim: the argument VOLUME is missing"},
		{"dump", 2, "tansy dump: the argument VOLUME is missing"},
		{"scrub", 2, "tansy scrub: the argument HOST[:PORT] is missing"},
		{"top", 2, "tansy top: the argument HOST[:PORT] is missing"},
		{"bench", 2, "tansy bench: the argument HOST:PORT is missing"},
		{"conform", 2, "tansy conform: the argument HOST:PORT is missing"},
		{"exports", 2, "tansy exports: the arguments check and FILE are missing"},
		{"exports check", 2, "tansy exports: the argument FILE is missing"},
		{"exports F", 2, `tansy exports: there is no "F": give check FILE`},
		{"completion", 2, "tansy completion: the argument bash|zsh|fish is missing"},
		{"completion tcsh", 2, `tansy completion: no completion for "tcsh": give bash, zsh or fish`},

		{"serve V", 2, `tansy serve: "V" is one argument too many: give --volume V`},
		{"mkfs V 10G", 2, `tansy mkfs: "10G" is one argument too many: give --size 10G`},
		{"version more", 2, `tansy version: "more" is one argument too many`},
		{"man more", 2, `tansy man: "more" is one argument too many`},
		{"umount a b", 2, `tansy umount: "b" is one argument too many`},
		{"dump F supr", 2, `tansy dump: there is no "supr" to print: did you mean super?`},
		{"dump F foo", 2, `tansy dump: there is no "foo" to print: give super, log, block N, inode N, or dir N`},
		{"dump F super 1", 2, `tansy dump: there is no "super 1" to print: did you mean super?`},
		{"dump F inode", 2, "tansy dump: inode needs a number, such as inode 1"},
		{"bench 127.0.0.1:1 smalfile", 2, `tansy bench: there is no workload "smalfile": did you mean smallfile?`},
		{"mount V D -o no_suid", 2, `tansy mount: -o "no_suid": tansy mount has no such option: did you mean nosuid?`},

		{"check E", 2, "tansy check: the argument VOLUME is empty"},
		{"dump E", 2, "tansy dump: the argument VOLUME is empty"},
		{"dump F inode E", 2, "tansy dump: argument 3 is empty"},
		{"mkfs E --size 8M", 2, "tansy mkfs: the argument VOLUME is empty"},
		{"mount F E", 2, "tansy mount: the argument DIR is empty"},
		{"umount E", 2, "tansy umount: the argument VOLUME|DIR is empty"},
		{"exports check E", 2, "tansy exports: the argument FILE is empty"},
		{"serve E", 2, `tansy serve: "" is one argument too many`},
		{"exports E", 2, "tansy exports: argument 1 is empty: give check FILE"},
		{"conform E", 2, "tansy conform: the argument HOST:PORT is empty"},
		{"repair F --undo E", 2, "tansy repair: --undo is empty: give FILE, or leave it out"},
		{"serve --exports E", 2, "tansy serve: --exports is empty: give FILE, or leave it out"},
		{"serve --mount=", 2, "tansy serve: --mount is empty: give DIR, or leave it out"},

		{"serve --scrub-every 1h", 2, "tansy serve: --scrub-every counts only with --scrub SIZE: give that, too"},
		{"serve --tls-cert x", 2, "tansy serve: --tls-cert counts only with --tls-key FILE: give that, too"},
		{"serve --tls-key x", 2, "tansy serve: --tls-key counts only with --tls-cert FILE: give that, too"},
		{"serve --tls-client-ca x", 2, "tansy serve: --tls-client-ca counts only with --tls-cert FILE: give that, too"},
		{"serve --status-tls --status 127.0.0.1:0", 2, "tansy serve: --status-tls counts only with --tls-cert FILE"},
		{"serve --status-tls --tls-cert x --tls-key x", 2, "tansy serve: --status-tls counts only with --status HOST:"},
		{"top 127.0.0.1 --ca x", 2, "tansy top: --ca counts only with https://HOST:PORT"},
		{"scrub 127.0.0.1 --ca x", 2, "tansy scrub: --ca counts only with https://HOST:PORT"},
		{"conform x --ca x", 2, "tansy conform: --ca counts only with --tls: give that, too"},
		{"conform x --tls --cert x", 2, "tansy conform: --cert counts only with --key FILE"},
		{"conform x --tls --ca D/no", 2, "tansy conform: open D/no: no such file"},
		{"bench x --tls --ca D/no", 1, "tansy bench: open D/no: no such file"},
		{"serve --xprtsec tls", 2, "tansy serve: --xprtsec tls keeps everybody out: it needs --tls-cert FILE"},
		{"serve --xprtsec mtls --tls-cert x --tls-key x", 2, "tansy serve: --xprtsec mtls keeps everybody out: it needs"},
		{"serve --xprtsec ssl", 2, `tansy serve: --xprtsec "ssl": `},
		{"serve --tls-cert D/no --tls-key T", 1, "tansy serve: certificate D/no and key T: "},
		{"cert", 2, "tansy cert: "},
		{"cert it", 2, `tansy cert: there is no certificate "it": give ca, server, or client`},
		{"cert ca x", 2, `tansy cert: "x" is one argument too many: an authority has no other name`},
		{"cert server", 2, "tansy cert: a certificate of a server needs a name"},
		{"cert client a..b", 2, `tansy cert: "a..b" is neither the name of a host nor an IP address`},
		{"cert client ../b", 2, `tansy cert: "../b" is neither the name of a host nor an IP address`},
		{"cert server x --days -1", 2, "tansy cert: --days -1: give 1 to 36500"},
		{"cert server x --dir D", 1, "tansy cert: no authority to sign with: "},
		{"serve --portmapper-port 9", 2, "tansy serve: --portmapper-port counts only with --portmapper or --rpcbind: give"},
		{"serve --mount-options ro", 2, "tansy serve: --mount-options counts only with --mount DIR: give that, too, or"},
		{"serve --status-host x", 2, "tansy serve: --status-host counts only with --status HOST:PORT or --debug-"},
		{"serve --lease 2s", 2, "tansy serve: --lease is for volumes on Ceph (rbd:POOL/IMAGE)"},
		{"serve --volume F --volume L", 2, "tansy serve: --volume F and --volume L are the same volume: give each volume"},
		{"serve --volume F:/a --volume L:/b", 2, "tansy serve: --volume F:/a and --volume L:/b are the same volume"},
		{"serve --volume F:/a --volume F:/b", 2, "tansy serve: --volume F:/a and --volume F:/b are the same volume"},
		{"serve --volume nbd:// --listen 0", 2, `tansy serve: "nbd://": the host is missing: nbd://HOST:PORT/EXPORT`},

		{"umount -f D", 2, "tansy umount: there is no flag -f: --lazy takes a file system out of sight that is in use"},
		{"umount --force D", 2, "tansy umount: there is no flag --force: --lazy takes a file system out of sight that is"},
		{"umount -l D", 1, "tansy umount: D: no volume is mounted there"},
		{"umount -t tansy D", 2, "tansy umount: there is no flag -t: leave the type out: it unmounts volumes alone"},
		{"umount --timeout 3 D", 2, "tansy umount: there is no flag --timeout: it waits until the volume is closed, for a"},
		{"mount -f F D", 2, "tansy mount: there is no flag -f: the mount is made, and stays in the foreground without"},
		{"mount -t tansy F D", 2, "tansy mount: there is no flag -t: leave the type out, which is that of a volume"},

		{"dump nbd://", 2, `tansy dump: "nbd://": the host is missing: nbd://HOST:PORT/EXPORT`},
		{"trim nbd://127.0.0.1:99999/x", 2, `tansy trim: "nbd://127.0.0.1:99999/x": 99999 is no port: 65535 is the`},
		{"trim rbd:a", 2, `tansy trim: "rbd:a": rbd:POOL/IMAGE is meant: one of the two is missing`},
		{"dump rbd:a/", 2, `tansy dump: "rbd:a/": rbd:POOL/IMAGE is meant: one of the two is missing`},
		{"dump rbd:a/b/c", 2, `tansy dump: "rbd:a/b/c": rbd:POOL/IMAGE is meant, without a namespace`},
		{"check nbd+unix:///x", 2, `tansy check: "nbd+unix:///x": the socket is missing: nbd+unix:///EXPORT?socket=PATH`},
		{"dump nbd://127.0.0.1:1/x", 1, "tansy dump: open nbd://127.0.0.1:1/x: dial tcp 127.0.0.1:1: connect: connection"},
		{"dump D", 1, "tansy dump: D is a directory: give an image file or a block device"},
		{"check /dev/null", 2, "tansy check: /dev/null is neither a file nor a block device, which a volume can be on"},
		{"mkfs /dev/null", 2, "tansy mkfs: /dev/null is neither a file nor a block device, which a volume can be on"},
		{"mkfs /dev/null --force", 2, "tansy mkfs: /dev/null is neither a file nor a block device, which a volume"},
		{"mkfs V --size 8M --mode 999", 2, `tansy mkfs: --mode "999" is no mode: give permission bits in octal`},
		{"serve --status-host a:1", 2, `tansy serve: --status-host "a:1" is no host name: give NAME without a port`},

		{"serve --volum V", 2, "tansy serve: there is no flag --volum: did you mean --volume?"},
		{"serve --max-conections 3", 2, "tansy serve: there is no flag --max-conections: did you mean --max-connections?"},
		{"serve -q", 2, "tansy serve: there is no flag -q: tansy backup, tansy receive, tansy restore, tansy check"},
		{"serve --force", 2, "tansy serve: there is no flag --force: tansy mkfs and tansy restore have it"},
		{"serve --listen nowhere", 2, `tansy serve: --listen "nowhere": the port is missing: give nowhere:PORT`},
		{"serve --listen ::1", 2, `tansy serve: --listen "::1": the port is missing: give [::1]:PORT`},
		{"serve --listen=", 2, "tansy serve: --listen is empty: give HOST:PORT"},
		{"mount V D -o commit=1m", 2, `tansy mount: -o "commit=1m": give a number of seconds`},
		{"serve --listen 65536", 2, `tansy serve: --listen 65536 is no port: 65535 is the highest`},
		{"serve --cache 1 --listen 1 --listen=2", 2, `tansy serve: --listen "2": only one address can be given; :PORT`},
		{"serve --cache 1 --status 1 --status 2", 2, `tansy serve: --status "2": only one address can be given`},
		{"serve --listen 127.0.0.1:", 2, `tansy serve: --listen "127.0.0.1:": "" is no port: give a number up to 65535`},
		{"serve --status 127.0.0.1", 2, `tansy serve: --status "127.0.0.1": the port is missing: give 127.0.0.1:PORT`},
		{"serve --debug-listen x", 2, `tansy serve: --debug-listen "x": the port is missing: give x:PORT`},
		{"serve --size 10X", 2, `tansy serve: --size "10X": not a size: give bytes, or a number with K, M, G, T, P, or E`},
		{"top nas:99999", 2, `tansy top: "nas:99999": 99999 is no port: 65535 is the highest`},
		{"scrub nas:99999", 2, `tansy scrub: "nas:99999": 99999 is no port: 65535 is the highest`},
		{"bench nas:99999", 2, `tansy bench: "nas:99999": 99999 is no port: 65535 is the highest`},
		{"bench nas:/vol", 2, `tansy bench: "nas:/vol": give HOST:PORT, and the path by itself, as --export /vol`},
		{"bench nas --mount-port x", 2, `tansy bench: --mount-port "x" is no port: give a number up to 65535`},
		{"conform nas:99999", 2, `tansy conform: "nas:99999": 99999 is no port: 65535 is the highest`},
		{"conform nas --timeout 0s", 2, "tansy conform: --timeout has to be more than 0"},
		{"check V --max-problems -1", 2, "tansy check: --max-problems has to be 0 or more"},

		{"mkfs V", 2, "tansy mkfs: V does not exist: give --size to make an image file"},
		{"mkfs D --force", 2, "tansy mkfs: D is a directory: give the name of an image file in it, such as D/tansy.img"},
		{"mkfs V --size 0.001", 2, `tansy mkfs: --size "0.001": not a whole number of bytes: give it without a fraction`},
		{"mkfs V --size 100000001", 2, "tansy mkfs: --size 100000001 is no positive multiple of 4096 bytes: give 97656K, for instance"},
		{"mkfs V --size 3P", 2, "tansy mkfs: 3377699720527872 bytes are too many: a volume has less than 225"},
		{"serve --volume V --create --size 3P --listen 0", 2, "tansy serve: 3377699720527872 bytes are too many"},
		{"mkfs V --size 7E", 2, "tansy mkfs: 8070450532247928832 bytes are too many: a volume has less than 225179981"},
		{"mkfs nbd://127.0.0.1:1/x", 1, "tansy mkfs: open nbd://127.0.0.1:1/x: dial tcp 127.0.0.1:1: connect: connection"},
		{"mkfs V --size 9E", 2, `tansy mkfs: --size "9E": too large: give less than 8E`},
		{"mkfs V --size 20T --log-size 17T", 2, "tansy mkfs: a journal of 18691697672192 bytes is too large: less"},
		{"mkfs V --size 0", 2, "tansy mkfs: --size is 0: give more, or leave it out"},
		{"mkfs V --inodes 0", 2, "tansy mkfs: --inodes is 0: give more, or leave it out"},
		{"mkfs V --replies 0", 2, "tansy mkfs: --replies is 0: give more, or leave it out"},
		{"mkfs V --log-size 0", 2, "tansy mkfs: --log-size is 0: give more, or leave it out"},
		{"mkfs V --size 8M --inodes 16", 2, "tansy mkfs: no such volume can be made: 16 inodes are too few: at least 17"},
		{"mkfs V --size 1MB", 2, "tansy mkfs: 1048576 bytes are too few for a journal of 5242880 bytes, 64 inodes, and data: it"},
		{"serve --volume V --create --size 1M --listen 127.0.0.1:0", 2, "tansy serve: 1048576 bytes are too few for a journal"},
		{"mkfs V --size 8M --owner nobody-at-all:0", 2, `tansy mkfs: --owner "nobody-at-all:0": this machine knows no user "nobody-at-all"`},
		{"mkfs V --size 8M --owner 0:no-group", 2, `tansy mkfs: --owner "0:no-group": this machine knows no group "no-group"`},
		{"mkfs V --size 8M --owner 4294967295:0", 2, `tansy mkfs: --owner "4294967295:0": this machine knows no user "4294967295": give`},
		{"mkfs V --size 8M --owner 123456789", 2, `tansy mkfs: --owner "123456789": the group is missing: give the numbers`},
		{"mkfs F", 1, "tansy mkfs: F exists already, and holds a Tansy volume: --force makes a volume over it"},
		{"mkfs T --force", 2, "tansy mkfs: 0 bytes are too few for a journal of 5242880 bytes, 64 inodes, and data: " +
			"it takes at least 5451776 (truncate -s 5451776 T, or more)"},
		{"serve --volume T --size 8M --listen 0", 1, "tansy serve: T: not a Tansy volume: 0 whole blocks of 4096 bytes " +
			"are too few for one (tansy mkfs makes a volume in a new file"},
		{"check T", 2, "tansy check: T: not a Tansy volume (tansy mkfs makes a volume in a new file"},
		{"dump T super", 1, "tansy dump: T: "},
		{"serve --exports --listen 0", 2, "tansy serve: --exports needs a value, and what follows is --listen"},
		{"mkfs V --size --force", 2, "tansy mkfs: --size needs a value, and what follows is --force"},
		{"mkfs V -size -force", 2, "tansy mkfs: --size needs a value, and what follows is -force"},
		{"mkfs F --force --size 9M", 2, "tansy mkfs: F exists already and keeps its size: leave --size out, or " +
			"give the file that size first: truncate -s 9437184 F"},
		{"scrub F", 2, "tansy scrub: F is a file: give HOST:PORT of a server; tansy check is for"},
		{"top F", 2, "tansy top: F is a file: give HOST:PORT of a server"},
		{"conform F", 2, "tansy conform: F is a file: give HOST:PORT of a server"},
		{"bench F smallfile", 2, "tansy bench: F is a file: give HOST:PORT of a server"},
		{"mount 127.0.0.1:/ D", 2, "tansy mount: 127.0.0.1:/ looks like what an NFS server exports, and no volume"},
		{"mount nas:2049 D", 2, "tansy mount: nas:2049 looks like what an NFS server exports, and no volume: mount -t nfs"},
		{"serve --listen 127.0.0.1:20499 --status 127.0.0.1:20499", 2, "tansy serve: --listen and --status are both 127."},
		{"serve --listen 20499 --debug-listen 20499", 2, "tansy serve: --listen and --debug-listen are both 127.0.0.1:20499"},
		{"serve --status 20498 --debug-listen 20498", 2, "tansy serve: --status and --debug-listen are both 127.0.0.1:20498"},
		{"serve --commit-interval 99999999999h", 2, `tansy serve: --commit-interval "99999999999h": too long a time: ` +
			"2562047h is the longest there is"},
		{"serve --commit-interval 2h", 2, "tansy serve: --commit-interval 2h0m0s: give 1ms to 1h"},
		{"mount F D --commit-interval 2h", 2, "tansy mount: --commit-interval 2h0m0s: give 1ms to 1h"},
		{"mount F D -o commit=7200", 2, "tansy mount: --commit-interval 2h0m0s: give 1ms to 1h"},
		{"serve --cache 0", 2, "tansy serve: --cache 0 is too small: give 4M or more"},
		{"serve --cache 1000T", 2, "tansy serve: --cache 1000T is more than the memory there is for the server"},
		{"mount F D --cache 0", 2, "tansy mount: --cache 0 is too small: give 4M or more"},
		{"serve --volume N --listen 0", 2, `tansy serve: --volume "N": the path for clients is missing behind the colon: ` +
			"give V:/PATH, or V alone"},
		{"serve --scrub 0 --scrub-every 1h", 2, "tansy serve: --scrub-every counts only with --scrub above 0: give a"},
		{"serve --read-only --discard on", 2, "tansy serve: --read-only changes nothing, so that --discard on has nothing"},
		{"mount F D --read-only --discard on", 2, "tansy mount: --read-only changes nothing, so that --discard on has"},
		{"mount F D --read-only -o rw", 2, "tansy mount: --read-only and -o rw contradict each other: leave one of them"},
		{"serve --mount D --mount-options ro,rw", 2, "tansy serve: --mount-options has ro and rw, which contradict each"},
		{"serve --mount D --read-only --mount-options rw", 2, "tansy serve: --read-only and --mount-options rw contradict"},
		{"serve --crowded-timeout 2m", 2, "tansy serve: --crowded-timeout 2m0s is longer than --record-timeout 1m0s, in whose"},
		{"serve --max-calls 1000000", 2, "tansy serve: --max-calls 1000000: give 1 to 10000"},
		{"serve --volume F --listen 0 --scrub 20", 2, "tansy serve: --scrub 20 is so many bytes per second, and would never"},
		{"check V", 2, "tansy check: open V: no such file or directory"},
		{"exports check V", 2, "tansy exports: open V: no such file or directory"},
		{"umount D", 1, "tansy umount: D: no volume is mounted there"},
		{"mount D F", 2, "tansy mount: D is a directory, and no volume: the volume comes first: tansy mount F D"},
		{"mount D nbd://127.0.0.1:1/x", 2, "tansy mount: D is a directory, and no volume: the volume comes first"},
		{"mount D D", 1, "tansy mount: D is a directory, and no volume: give an image file or a block device, and then the"},
		{"mount F F", 1, "tansy mount: F is no directory"},
	} {
		names := strings.NewReplacer("V", img, "F", full, "L", link, "T", text, "D", dir)
		var args []string
		for _, a := range strings.Fields(x.args) {
			switch a {
			case "N":
				a = img + ":"
			case "V", "F", "L", "T", "D", "--volume=V", "F:/a", "F:/b", "L:/b":
				a = names.Replace(a)
			case "E":
				a = ""
			}
			args = append(args, a)
		}
		code, _, errs := saying(t, args...)
		errs = strings.ReplaceAll(errs, strconv.Quote(img+":"), `"N"`)
		for name, short := range map[string]string{full: "F", link: "L", img: "V", text: "T"} {
			errs = strings.ReplaceAll(errs, name, short)
		}
		errs = strings.ReplaceAll(errs, dir, "D")
		first, second, _ := strings.Cut(errs, "\n")
		help := "`tansy " + args[0] + " --help` explains the command and shows examples.\n"
		helps := second == help || second == "`tansy help` lists the commands.\n"
		if x.code == exitFailure || judging[args[0]] { // which may be about what was met
			helps = helps || second == ""
		}
		if code != x.code || !strings.HasPrefix(first, x.says) || !helps {
			t.Errorf("tansy %s: exit code %d,\n%swant %d,\n%s", x.args, code, errs, x.code, x.says)
		}
	}
	if _, err := os.Stat(img); err == nil {
		t.Error("a mistake made a volume")
	}
}

// Whatever the command, a flag that it has not, a value that is none, or an argument too many is wrong: exit code 2.
func TestWrongFlagsEverywhere(t *testing.T) {
	for _, c := range commands {
		lines := [][]string{{"--xyzzy"}, {"--xyzzy=3"}, strings.Split("abcdefghijklmnopqrstuvwxyz", "")}
		for _, f := range flagsOf(c) {
			value, _ := describe(f)
			if value != "" {
				lines = append(lines, []string{spelled(f)}) // without its value
			}
			switch f.Value.(type) {
			case *byteSize, *owner, *mode, *discardMode, *portNumber, *mounting, *localMount:
				lines = append(lines, []string{spelled(f), "x"}, []string{spelled(f), "-1"})
			case *listenAddress:
				lines = append(lines, []string{spelled(f), "x"}, []string{spelled(f), "70000"})
			default:
				if value == "N" || value == "TIME" || value == "" {
					lines = append(lines, []string{spelled(f) + "=x"})
				}
			}
		}
		for _, line := range lines {
			code, out, errs := saying(t, append([]string{c.name}, line...)...)
			begins := strings.HasPrefix(errs, "tansy "+c.name+": ")
			if code != exitUsage || !begins || strings.Count(errs, "\n") != 2 || out != "" {
				t.Errorf("tansy %s %q: exit code %d, %q, %q", c.name, line, code, out, errs)
			}
		}
	}
}

// Of ro and rw the last counts, as mount(8) has it, with a warning; so it has -o discard of a table with ro.
func TestOptionsInOneAnothersWay(t *testing.T) {
	for options, says := range map[string]string{
		"ro,rw":      "tansy mount: warning: -o has ro and rw, of which the last counts: rw\n",
		"rw,ro":      "tansy mount: warning: -o has ro and rw, of which the last counts: ro\n",
		"ro,discard": "tansy mount: warning: -o discard means nothing for a mount that is read-only\n",
		"ro,ro":      "",
	} {
		img := filepath.Join(t.TempDir(), "none.img")
		code, _, errs := saying(t, "mount", img, t.TempDir(), "-o", options)
		if code != exitFailure || !strings.HasPrefix(errs, says+"tansy mount: "+img+" does not exist") {
			t.Errorf("%s: exit code %d, %s", options, code, errs)
		}
	}
}

// What a terminal would take for a command is escaped in names of volumes, wherever they are said.
func TestNamesWithControls(t *testing.T) {
	dir := t.TempDir()
	img := filepath.Join(dir, "a\x1b[31m\u009b7m\xff.img")
	says := func(want string, code int, args ...string) {
		t.Helper()
		got, out, errs := saying(t, args...)
		if got != code || !strings.Contains(out+errs, want) || strings.ContainsAny(out+errs, "\x1b\u009b") {
			t.Errorf("tansy %q: exit code %d, %q, %q", args, got, out, errs)
		}
	}
	const name = `a\x1b[31m\u009b7m\xff.img`
	says(name, exitFailure, "dump", img)
	says(name, exitUsage, "check", img)
	says(name+`": made a volume`, exitOK, "mkfs", img, "--size", "8M")
	says(name+" exists already", exitFailure, "mkfs", img)
	says(name+`": exists, and`, exitOK, "mkfs", img, "--size", "8M", "--if-missing")
	says(name+`": clean`, exitOK, "check", img)
	says(name+`": fragmentation`, exitOK, "check", img, "-v")
	says(name+`": clean, nothing to do`, exitOK, "repair", img)
	damaged := damagedCopy(t, img, "b\x1b.img")
	says(`b\x1b.img": damaged`, exitFailure, "check", damaged)
	says(`b\x1b.img": 1 repair done, 0 problems left; what was overwritten is in "`, exitOK, "repair", damaged, "--yes")
	for name, want := range map[string]string{
		"it's": `'it'\''s'`, "a b": "'a b'", "a\nb'c": `$'a\nb\'c'`, "\xff": `$'\xff'`, "ä": "'ä'",
	} {
		if got := quoted(name); got != want {
			t.Errorf("%q for a shell: %s, want %s", name, got, want)
		}
	}
}

// A size that is told to be the least works, and owners may be given by name.
func TestLeastSizeAndOwnerNames(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	_, _, errs := saying(t, "mkfs", img, "--size", "1M")
	_, rest, _ := strings.Cut(errs, "(--size ")
	least, _, ok := strings.Cut(rest, ", or more)")
	if !ok {
		t.Fatal(errs)
	}
	if code, _, errs := saying(t, "mkfs", img, "--size", least, "--owner", "root:root"); code != exitOK {
		t.Errorf("--size %s: %s", least, errs)
	}
	var o owner
	for text, want := range map[string]string{
		"root": "0:0", "root:": "0:0", "root:1234": "0:1234", "1234:root": "1234:0", "7:8": "7:8", "0": "0:0",
	} {
		if err := o.Set(text); err != nil || o.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, o.String(), err, want)
		}
	}
	for text, want := range map[string]string{
		"24500": "127.0.0.1:24500", ":2049": ":2049", "[::1]:1": "[::1]:1", "localhost:0": "localhost:0", "": "",
	} {
		var a listenAddress
		if err := a.Set(text); err != nil || a.at != want {
			t.Errorf("%q: %q, %v; want %q", text, a.at, err, want)
		}
	}
}

// mkfs says what an image holds that is no volume.
func TestMkfsSaysWhatIsThere(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	if err := os.WriteFile(img, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		code, _, errs := saying(t, "mkfs", img)
		if code != exitFailure || !strings.Contains(errs, "exists already, and holds "+want+": --force") {
			t.Errorf("%d, %s; want %s", code, errs, want)
		}
	}
	says("nothing that is known here")
	f, err := os.OpenFile(img, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("_BHRfS_M"), 0x10040); err != nil {
		t.Fatal(err)
	}
	says("btrfs")
	code, _, errs := saying(t, "serve", "--volume", img, "--listen", "127.0.0.1:0")
	if want := "no superblock (it holds btrfs, which would be lost"; code != exitFailure || !strings.Contains(errs, want) {
		t.Error(code, errs)
	}
	if code, _, errs := saying(t, "mkfs", img, "--force"); code != exitOK {
		t.Error(code, errs)
	}
	p := startServe(t, "--volume", img) // then nobody is advised to use force, or to cut the file
	inUse := "volume is in use by another server or tool"
	code, _, errs = saying(t, "mkfs", img, "--force", "--size", "1G")
	if code != exitFailure || !strings.Contains(errs, inUse) || strings.Contains(errs, "truncate") ||
		!strings.Contains(errs, "End that first: tansy umount ends a mount") {
		t.Errorf("%d, %s", code, errs)
	}
	code, _, errs = saying(t, "mkfs", img)
	want := fmt.Sprintf("exists already: lock %s: volume is in use by another server or tool", img)
	if code != exitFailure || !strings.Contains(errs, want) || strings.Contains(errs, "--force") {
		t.Errorf("%d, %s; want %s", code, errs, want)
	}
	p.stop(t)
}
