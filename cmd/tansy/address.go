package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// listenAddress is a flag value: where to listen, as HOST:PORT. A port alone is one of loopback. An empty one is none.
// It can be given once: who gives two wants both.
type listenAddress struct {
	at    string
	given bool
}

func (a *listenAddress) String() string { return a.at }

func (a *listenAddress) Set(text string) error {
	if a.given {
		return errors.New("only one address can be given; :PORT is that of every interface")
	}
	if text != "" {
		var err error
		if text, err = hostPort(text, ""); err != nil {
			return err
		}
	}
	*a = listenAddress{text, true}
	return nil
}

// loopback is the host of an address that is a port alone.
const loopback = "127.0.0.1"

// hostPort is text as HOST:PORT: a port alone is one of loopback, and a host alone gets the default port, if there is
// one.
func hostPort(text, port string) (string, error) {
	if text != "" && strings.Trim(text, "0123456789") == "" {
		text = net.JoinHostPort(loopback, text)
	}
	_, given, err := net.SplitHostPort(text)
	if err != nil {
		return withPort(text, port)
	}
	if strings.HasPrefix(given, "/") {
		return "", fmt.Errorf("give HOST:PORT, and the path by itself, as --export %s", given)
	}
	return text, wrongPort(given)
}

// noServer says what is wrong with the name of a server that is the name of a file, or nothing.
func noServer(name string) string {
	if st, err := os.Stat(name); err != nil || st.IsDir() {
		return ""
	}
	return name + " is a file: give HOST:PORT of a server; tansy check is for a volume that nobody serves"
}

// withPort is the host of text, which has no port, with that port; without one it is an error that says what to give.
func withPort(text, port string) (string, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if host == "" || strings.ContainsAny(host, "[]/ ") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
		host, port = loopback, ""
	}
	if port == "" {
		return "", errors.New("the port is missing: give " + net.JoinHostPort(host, "PORT"))
	}
	return net.JoinHostPort(host, port), nil
}

// wrongPort says what is wrong with a port, which is a number or the name of a service, or returns nil.
func wrongPort(text string) error {
	digits := text != "" && strings.Trim(text, "0123456789") == ""
	if _, err := strconv.ParseUint(text, 10, 16); digits && err != nil {
		return fmt.Errorf("%s is no port: 65535 is the highest", text)
	}
	if _, err := net.LookupPort("tcp", text); err != nil || text == "" {
		return fmt.Errorf("%q is no port: give a number up to 65535", text)
	}
	return nil
}

// portNumber is a flag value: a port of the server that is asked, "" for the same as another one's.
type portNumber string

func (p *portNumber) String() string { return string(*p) }

func (p *portNumber) Set(text string) error {
	if text != "" {
		if err := wrongPort(text); err != nil {
			return err
		}
	}
	*p = portNumber(text)
	return nil
}
