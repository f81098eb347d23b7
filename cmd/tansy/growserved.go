package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/ops/status"
)

// isServer tells whether a name is that of a server, and not of a volume: it is no file, and an address, a port, or
// HOST:PORT.
func isServer(name string) bool {
	if _, err := os.Lstat(name); err == nil || remote(name) {
		return false
	}
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return true
	}
	if strings.Contains(name, "/") {
		return false
	}
	_, port, err := net.SplitHostPort(name)
	if err == nil {
		return wrongPort(port) == nil
	}
	_, err = netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil || name == "localhost" || name != "" && strings.Trim(name, "0123456789") == ""
}

// ask has a server grow a volume of its own, shows how far it is, and returns the exit code.
func (o *growth) ask(f *flagSet, server string) int {
	url, err := statusURL(server)
	if err != nil {
		return misused(f, wrongly(server, err.Error()))
	}
	client, err := statusClient(o.ca, url)
	if err != nil {
		return misused(f, err.Error())
	}
	return o.askAt(f, client, strings.TrimSuffix(url, "status.json")+"grow")
}

// askAt is ask, with the URL for it.
func (o *growth) askAt(f *flagSet, client *http.Client, url string) int {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	defer stop()
	p := newProgress(os.Stderr, time.Now)
	end, err := o.post(ctx, client, url, p)
	fmt.Fprint(os.Stderr, p.clear)
	switch {
	case err != nil && ctx.Err() != nil:
		return fail("grow", errors.New("interrupted: the volume is as it was, or has grown (tansy top shows its size)"))
	case err != nil:
		return fail("grow", err)
	case end.Error != "" && end.Misuse:
		return misused(f, end.Error)
	case end.Error != "":
		return fail("grow", fmt.Errorf("%s: %s", end.Image, end.Error))
	}
	g := tansyfs.Growth{Before: tansyfs.VolumeSize(end.Before), After: tansyfs.VolumeSize(end.After)}
	tellGrowth(end.Image, g, end.Behind)
	return exitOK
}

// post asks for it, and returns how it ended.
func (o *growth) post(ctx context.Context, client *http.Client, url string, p *progress) (*status.Growing, error) {
	body, err := json.Marshal(status.Growth{Volume: o.volume, Size: uint64(o.size), Inodes: o.inodes})
	if err != nil {
		return nil, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, wrongArgument{fmt.Errorf("%w: give HOST:PORT", err)}
	}
	a, err := client.Do(q)
	if err != nil {
		return nil, wrongArgument{fmt.Errorf("%w (does tansy serve run there with --status?)", err)}
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(a.Body, maxReport))
		return nil, wrongArgument{fmt.Errorf("%s: %s", url, cut(cmp.Or(strings.TrimSpace(string(text)), a.Status), 500))}
	}
	for lines := json.NewDecoder(a.Body); ; {
		var g status.Growing
		if err := lines.Decode(&g); err != nil {
			return nil, fmt.Errorf("%s: the answer broke off: the volume is as it was, or has grown: %w", url, err)
		}
		if g.Ended {
			return &g, nil
		}
		p.report("grow", g.Done, g.Total)
	}
}

// grow has a volume that is served use what its device became larger by, as the status is asked for.
func (v *volume) grow(ctx context.Context, asked status.Growth, progress func(done, total uint64)) (
	g tansyfs.Growth, behind uint64, err error,
) {
	v.growing.Lock()
	defer v.growing.Unlock()
	if asked.Size > 0 {
		if err := lengthenTo(v.device, v.fs.Size(), asked.Size, func() error {
			return v.fs.CanGrow(ctx, asked.Size, tansyfs.GrowOptions{Inodes: asked.Inodes})
		}); err != nil {
			if errors.As(err, new(wrongArgument)) {
				err = fmt.Errorf("%w: %w", status.ErrMisuse, err)
			}
			return g, 0, err
		}
	}
	g, err = v.fs.Grow(ctx, tansyfs.GrowOptions{Inodes: asked.Inodes, Progress: progress})
	switch {
	case errors.Is(err, disk.ErrNotRemeasured):
		return g, 0, fmt.Errorf("%w: start the server again, with --grow", err)
	case errors.Is(err, tansyfs.ErrNoMore) && asked.Inodes == 0:
		err = nil // it has that size already
	case err == nil:
		v.log.Info("the volume has grown", "file", v.image, "bytes", g.After.Bytes, "before", g.Before.Bytes,
			"inodes", g.After.Inodes)
	}
	return g, v.device.Size()*disk.BlockSize - g.After.Bytes, fixed(err)
}
