//go:build linux

package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"tansy/bench/internal/rig"
)

// ganeshaMissing says what is not installed of what it takes.
func ganeshaMissing() (err error) {
	for _, name := range []string{"ganesha.nfsd", "rpcbind", "mkfs.ext4"} {
		_, wrong := exec.LookPath(name)
		err = errors.Join(err, wrong)
	}
	return err
}

// ganeshaConfig is NFSv3 over TCP, on ports that a name space of its own has free, and as it comes otherwise.
const ganeshaConfig = `NFS_CORE_PARAM {
    NFS_Port = 20490; MNT_Port = 20480; Protocols = 3;
    Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
}
EXPORT {
    Export_Id = 1; Path = %s; Pseudo = /export; Access_Type = RW; Squash = No_Root_Squash;
    SecType = sys, none; Protocols = 3; Transports = TCP; FSAL { Name = VFS; }
}
`

func serveGanesha(options string, flags uintptr) func(context.Context, *machine) (*served, error) {
	return func(ctx context.Context, m *machine) (s *served, err error) {
		if s, err = m.onExt4(ctx, options, flags); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, s.close())
			}
		}()
		config := filepath.Join(m.scratch, "ganesha.conf")
		if err := os.WriteFile(config, fmt.Appendf(nil, ganeshaConfig, s.dir), 0o644); err != nil {
			return s, err
		}
		if err := os.MkdirAll("/run/ganesha", 0o755); err != nil {
			return s, err
		}
		portmapper, err := rig.Launch("rpcbind", "-w", "-f")
		if err != nil {
			return s, err
		}
		s.end = append(s.end, ended(portmapper))
		if err := answers(ctx, "127.0.0.1:111"); err != nil {
			return s, fmt.Errorf("rpcbind: %w", err)
		}
		log := filepath.Join(m.scratch, "ganesha.log")
		pid := filepath.Join(m.scratch, "ganesha.pid")
		server, err := rig.Launch("ganesha.nfsd", "-F", "-L", log, "-f", config, "-p", pid)
		if err != nil {
			return s, err
		}
		s.end = append(s.end, ended(server))
		s.addr, s.mountAddr, s.export = nfsAddr, mountAddr, s.dir
		if err := errors.Join(answers(ctx, nfsAddr), answers(ctx, mountAddr)); err != nil {
			said, _ := os.ReadFile(log)
			return s, fmt.Errorf("ganesha.nfsd: %w\n%s", err, said[max(0, len(said)-2000):])
		}
		return s, nil
	}
}

// ended has a process end that need not say that it has done so well.
func ended(p *rig.Server) func() error {
	return func() error {
		p.Stop()
		return nil
	}
}
