package main

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// known tells that args are a sub-command and flags of it.
func known(t *testing.T, from string, args []string) {
	t.Helper()
	i := slices.IndexFunc(commands, func(c command) bool { return len(args) > 0 && c.name == args[0] })
	if i < 0 {
		t.Errorf("%s: no such command: %q", from, args)
		return
	}
	flags := flagsOf(commands[i])
	for _, a := range args[1:] {
		name, isFlag := strings.CutPrefix(a, "--")
		if isFlag && !slices.ContainsFunc(flags, func(f *flag.Flag) bool { return f.Name == name }) {
			t.Errorf("%s: tansy %s has no flag %s", from, args[0], a)
		}
	}
}

// What the units, the Dockerfile and the recipes start exists.
func TestPackaging(t *testing.T) {
	read := func(path string) string { return packaged(t, path) }
	unit := read("packaging/tansy.service")
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/tansy serve \$TANSY_OPTIONS$`).FindString(unit)
	byDefault := regexp.MustCompile(`(?m)^Environment="TANSY_OPTIONS=(.*)"$`).FindStringSubmatch(unit)
	if start == "" || byDefault == nil {
		t.Fatal("no ExecStart, or no options")
	}
	serves(t, "tansy.service", append([]string{"serve"}, strings.Fields(byDefault[1])...))
	rule := regexp.MustCompile(`(?m)^IMPORT\{program\}="/usr/bin/tansy (.*) \$devnode"$`).FindStringSubmatch(
		read("packaging/61-tansy.rules"))
	if rule == nil {
		t.Fatal("the rule of udev calls no program")
	}
	known(t, "61-tansy.rules", strings.Fields(rule[1]))
	n := 0
	for _, m := range regexp.MustCompile(`(?m)CMD (\[.*\])$`).FindAllStringSubmatch(read("packaging/Dockerfile"), -1) {
		var args []string
		if err := json.Unmarshal([]byte(m[1]), &args); err != nil {
			t.Fatal(err)
		}
		args = slices.DeleteFunc(args, func(a string) bool { return a == "tansy" })
		if known(t, "Dockerfile", args); args[0] == "serve" {
			serves(t, "Dockerfile", args)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d commands in the Dockerfile", n)
	}
	for _, name := range []string{"server.yaml", "standby.yaml"} {
		all := regexp.MustCompile(`(?m)^ +args: (\[.*\])$`).FindAllStringSubmatch(read("packaging/kubernetes/"+name), -1)
		if len(all) == 0 {
			t.Fatalf("no arguments in %s", name)
		}
		for i, args := range all {
			var list []string
			if err := json.Unmarshal([]byte(args[1]), &list); err != nil {
				t.Fatalf("the arguments in %s: %v", name, err)
			}
			if i == len(all)-1 { // the others come before the server
				serves(t, name, list)
			}
			known(t, name, list)
		}
	}
}

// packaged is the text of a file of the repository.
func packaged(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// serves tells that args serve a named volume, which they do not make: it may be missing because its disk is.
func serves(t *testing.T, from string, args []string) {
	t.Helper()
	known(t, from, args)
	if args[0] != "serve" || !slices.Contains(args, "--volume") || slices.Contains(args, "--create") {
		t.Errorf("%s starts %q", from, args)
	}
}

// The recipe of the installation makes a volume and serves it, and further ones, to a network: with other paths, here.
func TestInstallRecipe(t *testing.T) {
	t.Parallel()
	text := packaged(t, "docs/guide/operations.md")
	dir := t.TempDir()
	here := strings.NewReplacer("/var/lib/tansy/", dir+"/", "/srv/tansy/", dir+"/", "/etc/", dir+"/",
		":2049", "127.0.0.1:0", ":9049", ":0", "100G", "8M")
	table := regexp.MustCompile(`echo '(/[^']*)' \| sudo tee /etc/tansy.exports`).FindStringSubmatch(text)
	if table == nil {
		t.Fatal("no exports in the recipe")
	}
	writeFile(t, filepath.Join(dir, "tansy.exports"), table[1]+"\n")
	made := regexp.MustCompile(`(?m)^sudo -u tansy tansy (mkfs .*)$`).FindAllStringSubmatch(text, -1)
	options := regexp.MustCompile(`TANSY_OPTIONS='([^']*)'`).FindAllStringSubmatch(text, -1)
	if len(made) != 3 || len(options) != 2 {
		t.Fatalf("%d volumes, %d times options", len(made), len(options))
	}
	for _, m := range made {
		tansy(t, strings.Fields(here.Replace(m[1]))...)
	}
	for i, o := range options {
		args := strings.Fields(o[1])
		serves(t, "operations.md", append([]string{"serve"}, args...))
		if !strings.Contains(o[1], "--listen :2049 --exports /etc/tansy.exports") {
			t.Errorf("no network is served: %s", o[1])
		}
		if i > 0 { // the paths of clients are others
			writeFile(t, filepath.Join(dir, "tansy.exports"), "/a *\n/b *\n")
		}
		p := startServe(t, strings.Fields(here.Replace(o[1]))...)
		p.stop(t)
		if list := p.stderr.String(); strings.Contains(list, "level=WARN") || strings.Contains(list, "level=ERROR") {
			t.Errorf("%s:\n%s", o[1], list)
		}
	}
}

// The container's entrypoint makes the volume with a command that there is. Its own tests are about the rest.
func TestEntrypoint(t *testing.T) {
	making := regexp.MustCompile(`CommandContext\(stop, path, "(mkfs)", image, "(--[a-z-]+)", "(--[a-z-]+)", size\)`)
	made := making.FindStringSubmatch(packaged(t, "packaging/entrypoint/main.go"))
	if made == nil {
		t.Fatal("the entrypoint does not make a volume as this test knows it")
	}
	known(t, "entrypoint", made[1:])
}

// Whoever reaches the container is one ordinary user, who owns the volume. Its size is a variable.
func TestContainerDefaults(t *testing.T) {
	text := packaged(t, "packaging/Dockerfile")
	for _, want := range []string{
		"\nENV TANSY_SIZE=10G\n", "\nUSER 65532:65532\n", "\nCOPY packaging/container.exports /etc/tansy.exports\n",
		`"--exports", "/etc/tansy.exports"]`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the Dockerfile", want)
		}
	}
	const rule = "rw,root_squash,all_squash,insecure,sync,anonuid=65532,anongid=65532"
	got := strings.Fields(tansy(t, "exports", "check", "../../packaging/container.exports"))
	if want := []string{"/", "*", rule}; !slices.Equal(got, want) {
		t.Errorf("exports: %q, want %q", got, want)
	}
}

// Volumes, also those that are being made, and undo files of theirs stay out of the container's build.
func TestDockerignore(t *testing.T) {
	lines := strings.Split(packaged(t, ".dockerignore"), "\n")
	for _, want := range []string{"**/*.img", "**/*.img.*"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %q", want)
		}
	}
}

// What is for Kubernetes agrees with its schemas, which the program has in itself.
func TestKubernetes(t *testing.T) {
	validate, err := exec.LookPath("kubernetes-validate")
	if err != nil {
		t.Skip("no kubernetes-validate here: pip install kubernetes-validate")
	}
	files, err := filepath.Glob("../../packaging/kubernetes/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	if out, err := exec.Command(validate, append([]string{"--strict"}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The exports in the manifests can be read.
func TestKubernetesExports(t *testing.T) {
	for _, name := range []string{"server.yaml", "standby.yaml"} {
		b, err := os.ReadFile("../../packaging/kubernetes/" + name)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^  exports: \|\n((?:    .*\n)+)`).FindSubmatch(b)
		if m == nil {
			t.Fatalf("no exports in %s", name)
		}
		file := filepath.Join(t.TempDir(), "exports")
		if err := os.WriteFile(file, m[1], 0o600); err != nil {
			t.Fatal(err)
		}
		if out := tansy(t, "exports", "check", file); !strings.Contains(out, "rw,no_root_squash") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// systemd finds no fault with the units, and the drop-in for locks.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd here")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tansy.service.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	var units []string
	for _, name := range []string{"tansy.service", "tansy.socket"} {
		b, err := os.ReadFile(filepath.Join("../../packaging", name))
		if err != nil {
			t.Fatal(err)
		}
		// It looks for the program, too.
		text := strings.Replace(string(b), "/usr/local/bin/tansy ", os.Args[0]+" ", 1)
		units = append(units, filepath.Join(dir, name))
		if err := os.WriteFile(units[len(units)-1], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(dir, "tansy.service.d", "locks.conf"), packaged(t, "packaging/locks.conf"))
	verify := exec.Command(analyze, append([]string{"verify", "--man=no"}, units...)...)
	if out, err := verify.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// README and the container have the least Go that go.mod asks for, which has to be a release: with "go 1.26" a Go that
// is older looks for one that does not exist.
func TestLeastGo(t *testing.T) {
	least := regexp.MustCompile(`(?m)^go (\d+\.\d+)\.\d+$`).FindStringSubmatch(packaged(t, "go.mod"))
	if least == nil {
		t.Fatal("no release in go.mod")
	}
	for file, want := range map[string]string{
		"README.md": "Go " + least[1] + " or newer", "docs/guide/operations.md": "Go " + least[1] + " or newer",
		"packaging/Dockerfile": "FROM golang:" + least[1] + " ", "packaging/Dockerfile.ceph": "FROM golang:" + least[1] + " ",
	} {
		if !strings.Contains(packaged(t, file), want) {
			t.Errorf("no %q in %s", want, file)
		}
	}
}
