package process

import "strings"

// Unescaped is a name as it stands in a table of the kernel's or in /etc/fstab: a backslash and three octal digits are
// the byte of that number. Any byte may be written so: the kernel does it for spaces, tabs, ends of lines, #, and
// backslashes.
func Unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c, ok := octal(s[i:]); ok {
			b.WriteByte(c)
			i += 3
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// octal is the byte that s begins with as a backslash and three digits.
func octal(s string) (c byte, ok bool) {
	if len(s) < 4 || s[0] != '\\' || s[1] > '3' {
		return 0, false
	}
	for _, digit := range []byte(s[1:4]) {
		if digit < '0' || digit > '7' {
			return 0, false
		}
		c = c<<3 | (digit - '0')
	}
	return c, true
}
