package exports

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// text prints exports one client a line, as they were understood.
func text(exports []Export) string {
	var b strings.Builder
	for _, e := range exports {
		for _, c := range e.Clients {
			fmt.Fprintf(&b, "%s %s(%s)\n", e.Path, c.Name, &c.Rule)
		}
	}
	return b.String()
}

const (
	defaults = "ro,root_squash,no_all_squash,secure,sync,anonuid=65534,anongid=65534"
	writable = "rw,root_squash,no_all_squash,secure,sync,anonuid=65534,anongid=65534"
)

func TestParse(t *testing.T) {
	for _, x := range []struct{ in, want string }{
		{"", ""},
		{"\n# nothing\n   # here\n", ""},
		{"/ *", "/ *(" + defaults + ")\n"},
		{"/ *()", "/ *(" + defaults + ")\n"},
		{"/ *(rw)", "/ *(" + writable + ")\n"},
		{"/\t*(rw,sync,no_subtree_check,sec=sys)  # all\n", "/ *(" + writable + ")\n"},
		{"/a/b 10.0.0.1(rw) 10.0.0.2", "/a/b 10.0.0.1(" + writable + ")\n/a/b 10.0.0.2(" + defaults + ")\n"},
		{"/a -rw,insecure x.example y(ro)",
			"/a x.example(rw,root_squash,no_all_squash,insecure,sync,anonuid=65534,anongid=65534)\n" +
				"/a y(ro,root_squash,no_all_squash,insecure,sync,anonuid=65534,anongid=65534)\n"},
		{"/a *(no_root_squash,all_squash,anonuid=0,anongid=4294967294)",
			"/a *(ro,no_root_squash,all_squash,secure,sync,anonuid=0,anongid=4294967294)\n"},
		{"/a *(all_squash,no_all_squash,rw,ro,no_root_squash,root_squash,insecure,secure)", "/a *(" + defaults + ")\n"},
		{"/a \\\n  x \\\r\n\ty\n/b z", "/a x(" + defaults + ")\n/a y(" + defaults + ")\n/b z(" + defaults + ")\n"},
		{"\"/with space\" x\n/with\\040space y\n", "/with space x(" + defaults + ")\n/with space y(" + defaults + ")\n"},
		{"//a/./b/ x", "/a/b x(" + defaults + ")\n"},
		{"/a 10.0.0.0/8 10.0.0.0/255.255.0.0 2001:db8::/32 ::1 *.Example.org host[1-3].lab.",
			"/a 10.0.0.0/8(" + defaults + ")\n/a 10.0.0.0/255.255.0.0(" + defaults +
				")\n/a 2001:db8::/32(" + defaults + ")\n/a ::1(" + defaults + ")\n/a *.Example.org(" + defaults + ")\n/a host[1-3].lab.(" + defaults + ")\n"},
		{"/a [2001:db8::1](rw) [fd00:1::]/64", "/a 2001:db8::1(" + writable + ")\n/a fd00:1::/64(" + defaults + ")\n"},
		{"/a x\r\n/b y\r\n", "/a x(" + defaults + ")\n/b y(" + defaults + ")\n"},
	} {
		if got, _, err := Parse([]byte(x.in)); err != nil || text(got) != x.want {
			t.Errorf("%q: %v\n%swant\n%s", x.in, err, text(got), x.want)
		}
	}
}

// What changes nothing is accepted with a warning that says where it stands, each once.
func TestWarnings(t *testing.T) {
	for _, x := range []struct{ in, want string }{
		{"/ *(rw,sync,root_squash)", ""},
		{"/ *(rw,async)", "1:8: async changes nothing here: a stable operation is answered when it is durable, as with sync"},
		{"/ *(async,\\\nrw,fsid=0)",
			"1:5: async changes nothing here: a stable operation is answered when it is durable, as with sync\n" +
				"2:4: fsid=0 changes nothing here: a volume has an identity of its own, and there is no root of NFSv4"},
		{"/ -nohide *(nohide) x(nohide,hide)",
			"1:4: nohide changes nothing here: nothing is mounted below a directory of a volume\n" +
				"1:30: hide changes nothing here: nothing is mounted below a directory of a volume"},
		{"/ [2001:db8::1]", "1:3: [2001:db8::1]: taken for 2001:db8::1, as addresses stand without brackets in exports(5)"},
	} {
		_, warnings, err := Parse([]byte(x.in))
		var got []string
		for _, w := range warnings {
			got = append(got, w.Error())
		}
		if strings.Join(got, "\n") != x.want || err != nil {
			t.Errorf("%q: %v, warnings\n%s\nwant\n%s", x.in, err, strings.Join(got, "\n"), x.want)
		}
	}
	for _, option := range []string{
		"sec=sys", "fsid=0", "fsid=7e02ae04", "crossmnt", "nocrossmnt", "nohide", "hide", "no_wdelay", "wdelay",
		"no_acl", "acl",
		"subtree_check", "no_subtree_check", "async", "insecure_locks", "secure_locks", "auth_nlm", "no_auth_nlm",
		"pnfs", "no_pnfs", "security_label",
	} {
		list, warnings, err := Parse([]byte("/ *(rw," + option + ")"))
		warned := len(warnings) == 1 && strings.HasPrefix(warnings[0].What, option+" changes nothing here: ")
		if err != nil || !warned || text(list) != "/ *("+writable+")\n" {
			t.Errorf("%s: %v, %v\n%s", option, err, warnings, text(list))
		}
	}
}

// A mistake is told with its line and column, counted from 1, and what it is.
func TestParseErrors(t *testing.T) {
	long := strings.Repeat("n", 256)
	for _, x := range []struct {
		in           string
		line, column int
		what         string
	}{
		{"home *", 1, 1, `"home" is no path`},
		{"@all *", 1, 1, "is no path"},
		{"\n\n  /a/../b *", 3, 3, "has no .. here"},
		{"/" + long + " *", 1, 1, "256 bytes"},
		{strings.Repeat("/ab", 342) + " *", 1, 1, "1026 bytes"},
		{`/a\04 *`, 1, 1, "octal"},
		{`/a\999 *`, 1, 1, "octal"},
		{`/a\777 *`, 1, 1, "octal"},
		{`/a\000 *`, 1, 1, "zero byte"},
		{`"/a b *`, 1, 1, "not closed"},
		{`"/a"*`, 1, 5, "space is missing"},
		{"/a", 1, 1, "no clients"},
		{"/a -rw # x", 1, 1, "no clients"},
		{"/a (rw)", 1, 4, "options without a client"},
		{"/a host (rw)", 1, 9, "options without a client"},
		{"/a host(rw", 1, 11, "no closing bracket"},
		{"/a host(rw ro)", 1, 11, "no closing bracket"},
		{"/a host(rw)x", 1, 12, "space is missing"},
		{"/a \\\n @staff(rw)", 2, 2, "netgroup @staff"},
		{"/a *(rw,sec=krb5)", 1, 9, "sec=krb5: there is no Kerberos"},
		{"/a *(rw,\\\nsec=krb5p)", 2, 1, "sec=krb5p: there is no Kerberos"},
		{"/a *(sec=sys:krb5)", 1, 6, "there is no Kerberos"},
		{"/a *(sec)", 1, 6, "there is no Kerberos"},
		{"/a *(xprtsec=ssl)", 1, 6, `xprtsec=ssl: "ssl" is none of none, tls, and mtls`},
		{"/a *(xprtsec)", 1, 6, `"" is none of`},
		{"/a *(xprtsec=tls:)", 1, 6, `"" is none of`},
		{"/a *(xprtsec=tls,mtls)", 1, 18, `unknown option "mtls"`},
		{"/a cn:", 1, 4, "a name is missing"},
		{`/a cn:a\9`, 1, 4, "octal"},
		{"/a dns:", 1, 4, "is no address, network, host name"},
		{"/a dns:[a", 1, 4, "brackets of the pattern"},
		{"/a dns:x@y", 1, 4, "is no address, network, host name"},
		{"/a dns:x DNS:X", 1, 10, "a rule for DNS:X already"},
		{"/a *(mp)", 1, 6, "never a mount point"},
		{"/a *(mountpoint=/a)", 1, 6, "never a mount point"},
		{"/a *(refer=/b@host)", 1, 6, "no referrals"},
		{"/a *(rw,no_rootsquash)", 1, 9, `unknown option "no_rootsquash": did you mean no_root_squash? (there are ro,`},
		{"/a *(nix)", 1, 6, `unknown option "nix" (there are ro,`},
		{"/a -fsid *", 1, 5, `unknown option "fsid"`},
		{"/a [2001:db8::1", 1, 4, "is no IP address"},
		{"/a [10.0.0.1]/x", 1, 4, "neither the length"},
		{"/a [::1]x", 1, 4, "is no IP address"},
		{"/a [::]/129", 1, 4, "neither the length"},
		{"/a ::1 [::1]", 1, 8, "a rule for ::1 already"},
		{"/a *(rw=1)", 1, 6, `unknown option "rw=1"`},
		{"/a *(anonuid)", 1, 6, "give a number"},
		{"/a *(anonuid=)", 1, 6, "give a number"},
		{"/a *(anonuid=-2)", 1, 6, "give a number"},
		{"/a *(anongid=4294967295)", 1, 6, "give a number"},
		{"/a *(anongid=nobody)", 1, 6, "give a number"},
		{"/a 10.0.0.0/33", 1, 4, "neither the length"},
		{"/a 10.0.0.0/255.0.255.0", 1, 4, "netmask"},
		{"/a 10.0.0.0/ff", 1, 4, "netmask"},
		{"/a ::/255.0.0.0", 1, 4, "netmask"},
		{"/a ::ffff:10.0.0.0/24", 1, 4, "IPv4"},
		{"/a 10.0.0/24", 1, 4, "no IP address"},
		{"/a fe80::1%eth0/64", 1, 4, "no IP address"},
		{"/a fe80::1%eth0", 1, 4, "no IP address"},
		{"/a 10.0.0", 1, 4, "no IP address"},
		{"/a 10.0.0.256", 1, 4, "no IP address"},
		{"/a 10.0.0.*", 1, 4, "pattern is of host names"},
		{"/a host[1-", 1, 4, "brackets"},
		{"/a gss/krb5(rw)", 1, 4, "Kerberos"},
		{"/a a..b", 1, 4, "is no address"},
		{"/a a$b", 1, 4, "is no address"},
		{"/a *.$x", 1, 4, "is no address"},
		{"/a " + long, 1, 4, "256 bytes"},
		{"/a x(rw) y X(ro)", 1, 12, "a rule for X already"},
		{"/a x\n/b y\n/a/ x", 3, 5, "a rule for x already"},
		{strings.Repeat(" ", maxFile+1), 1, 1, "too long"},
	} {
		got, warnings, err := Parse([]byte(x.in))
		want := fmt.Sprintf("%d:%d: ", x.line, x.column)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), x.what) || got != nil || warnings != nil {
			t.Errorf("%.40q: %v, want %s... %s", x.in, err, want, x.what)
		}
	}
	_, _, err := Parse([]byte("a *\n/b *(nix)\n/c *\n/d\n"))
	if got := strings.Count(err.Error(), "\n"); got != 2 {
		t.Errorf("three mistakes are told as\n%v", err)
	}
	_, _, err = Parse([]byte(strings.Repeat("x\n", 1000)))
	if got := strings.Count(err.Error(), "\n"); got != maxProblems-1 {
		t.Errorf("of 1000 mistakes %d are told", got+1)
	}
}

// FuzzParse: any text is understood or refused with a place that is in it; and what was
// understood, printed, means the same again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"/ *(rw)", "/a -rw,insecure x.example y(ro) # c\n", "\"/a b\" 10.0.0.0/8(all_squash,anonuid=5)\n",
		"/a \\\n *.x.org(secure)", "/a\\040b ::1 @n",
		"/a 10.0.0.0/255.255.0.0", "/a (rw)", "\\", "\"", "/a x(", "/a x()y", "/a host[a-z]?(sync,async)",
		"/a [::1](fsid=0) [::]/0(sec=sys)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, _, err := Parse([]byte(in))
		if err != nil {
			lines := strings.Split(in, "\n")
			list, ok := err.(interface{ Unwrap() []error })
			if !ok {
				t.Fatalf("%q: %v is not a list", in, err)
			}
			for _, e := range list.Unwrap() {
				p := e.(*Problem)
				if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > len(lines[p.Line-1])+1 {
					t.Fatalf("%q: %v is not in it", in, p)
				}
			}
			return
		}
		var b strings.Builder
		for _, e := range got {
			b.WriteString("\"" + strings.NewReplacer(`\`, `\134`, `"`, `\042`, "\n", `\012`).Replace(e.Path) + "\"")
			for _, c := range e.Clients {
				fmt.Fprintf(&b, " %s(%s)", c.Name, &c.Rule)
			}
			b.WriteByte('\n')
		}
		again, _, err := Parse([]byte(b.String()))
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%q is\n%s, but that is %+v (%v)", in, &b, again, err)
		}
		NewTable(got, nil).rules(caller{}, []string{"x.example.org"}, nil)
	})
}
