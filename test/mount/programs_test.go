//go:build linux

package mount

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tansy/test/kit/mounttest"
)

// shell runs a script in a directory; without one of the tools the test is skipped.
func shell(t *testing.T, dir, script string, tools ...string) string {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	c := exec.Command("sh", "-e", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return string(out)
}

// mounted is a volume for one test, which is unmounted and checked at its end.
func mounted(t *testing.T, size string) (dir string) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, size)
	m := mounttest.New(t, bin, image)
	t.Cleanup(func() {
		if !t.Failed() && !t.Skipped() {
			m.Unmount(t, bin, image)
		}
	})
	return m.Dir
}

func TestGit(t *testing.T) {
	dir := mounted(t, "1G")
	out := shell(t, dir, `
git init -q a && cd a && git config user.email a@example.org && git config user.name a
for i in $(seq 30); do mkdir -p d$((i % 5)); seq $((i * 50)) >d$((i % 5))/f$i; git add -A; git commit -qm "change $i"; done
git branch old HEAD~10; git gc -q; cd ..
git clone -q --no-local a b; cd b; git config user.email a@example.org; git config user.name a; git checkout -q -b mine origin/old; echo x >>d1/f1; git commit -qam mine
git rebase -q origin/HEAD || git rebase --skip; git fsck --full --strict; git status --short
cd ../a; git fsck --full --strict; git stash list; rm -r d1; git checkout -q d1; git status --short; git log --oneline | wc -l`, "git")
	if strings.Contains(out, "error") || !strings.Contains(out, "30\n") {
		t.Error(out)
	}
}

func TestSqlite(t *testing.T) {
	dir := mounted(t, "256M")
	for _, journal := range []string{"delete", "wal"} { // WAL maps a file that processes share
		var b strings.Builder
		fmt.Fprintf(&b, "pragma journal_mode = %s;\ncreate table t(a integer primary key, b text);\n", journal)
		for i := range 50 {
			fmt.Fprintf(&b, "begin; insert into t values(%d, hex(randomblob(500))); update t set b = b || 'x' where a %% 7 = %d; commit;\n", i, i%7)
		}
		must(t, os.WriteFile(filepath.Join(dir, "script"), []byte(b.String()), 0o644))
		out := shell(t, dir, `
sqlite3 `+journal+`.db <script
for i in 1 2 3; do (for j in $(seq 10); do sqlite3 -cmd '.timeout 60000' `+journal+`.db "insert into t(b) values('by $i')"; done) & done; wait
sqlite3 `+journal+`.db "pragma integrity_check; select count(*) from t; vacuum; pragma integrity_check"`, "sqlite3")
		if !strings.HasSuffix(out, "ok\n80\nok\n") {
			t.Errorf("%s: %s", journal, out)
		}
	}
}

func TestTar(t *testing.T) {
	dir := mounted(t, "1G")
	out := shell(t, dir, `
mkdir src; cd src; for i in $(seq 200); do mkdir -p d$((i % 9))/e; seq $i >d$((i % 9))/e/f$i; done
ln d1/e/f1 hard; ln -s d1/e/f1 soft; truncate -s 100M sparse; echo end >>sparse; chmod 4755 d2/e/f2; touch -d 1999-12-31 d3; cd ..
tar cSf t.tar src; mkdir out; tar xpf t.tar -C out; diff -r --no-dereference src out/src; tar df t.tar -C out
cp -a src copy; diff -r --no-dereference src copy; [ src/hard -ef src/d1/e/f1 ]; [ copy/hard -ef copy/d1/e/f1 ]
rm -rf out copy src; ls`, "tar", "diff")
	if out != "t.tar\n" {
		t.Error(out)
	}
}
