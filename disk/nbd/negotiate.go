package nbd

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"tansy/disk"
)

// export is what the server tells of it.
type export struct {
	size  uint64 // bytes
	flags uint16
	least uint32 // bytes of a request; so are its offset and length multiples of that
	most  uint32 // bytes of a request
}

// negotiate asks for an export on a new connection, and returns the connection that is to be used from
// then on. What the server sends may be anything; how long it takes is bounded by the deadline of c.
func negotiate(c net.Conn, t *target) (net.Conn, *export, error) {
	var hello [18]byte
	if _, err := io.ReadFull(c, hello[:]); err != nil {
		return nil, nil, hungUp(err)
	}
	if binary.BigEndian.Uint64(hello[:]) != magicServer {
		return nil, nil, errors.New("what listens there is no NBD server")
	}
	if m := binary.BigEndian.Uint64(hello[8:]); m == magicOldStyle {
		return nil, nil, errors.New("the NBD server speaks only the protocol from before 2011 (oldstyle)")
	} else if m != magicOption {
		return nil, nil, errors.New("what listens there is no NBD server")
	}
	flags := binary.BigEndian.Uint16(hello[16:])
	if flags&fixedNewstyle == 0 {
		return nil, nil, errors.New("the NBD server speaks only the protocol from before 2013 (newstyle, not fixed)")
	}
	ours := uint32(flags & (fixedNewstyle | noZeroes))
	if _, err := c.Write(binary.BigEndian.AppendUint32(nil, ours)); err != nil {
		return nil, nil, hungUp(err)
	}
	if t.tls != nil {
		var err error
		if c, err = startTLS(c, t.tls); err != nil {
			return nil, nil, err
		}
	}
	x, err := askByGo(c, t.export)
	if errors.Is(err, errNoGo) {
		x, err = askByName(c, t.export, flags&noZeroes != 0)
	}
	if err != nil {
		return nil, nil, err
	}
	return c, x, x.usable()
}

// startTLS makes c a connection by TLS. Nothing that was received before that is used after it.
func startTLS(c net.Conn, config *tls.Config) (net.Conn, error) {
	if err := sendOption(c, optStartTLS, nil); err != nil {
		return nil, err
	}
	kind, text, err := answer(c, optStartTLS)
	switch {
	case err != nil:
		return nil, err
	case kind == errUnsupported || kind == errPolicy:
		return nil, errors.New("the server does not speak TLS: nbd:// is without")
	case kind != answerAck:
		return nil, refusal(kind, text)
	}
	secure := tls.Client(c, config)
	if err := secure.Handshake(); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return secure, nil
}

// errNoGo says that the server does not know the option.
var errNoGo = errors.New("no GO")

// askByGo asks for the export, its flags, and its block sizes.
func askByGo(c net.Conn, name string) (*export, error) {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(name)))
	b = append(b, name...)
	b = append(b, 0, 1, 0, infoBlockSize)
	if err := sendOption(c, optGo, b); err != nil {
		return nil, err
	}
	x := &export{least: 1, most: maxPayload}
	told := false
	for range maxAnswers {
		kind, body, err := answer(c, optGo)
		if err != nil {
			return nil, err
		}
		switch {
		case kind == errUnsupported:
			return nil, errNoGo
		case kind == answerAck && told:
			return x, nil
		case kind == answerAck:
			return nil, errors.New("the server says nothing of the export")
		case kind != answerInfo:
			return nil, refusal(kind, body)
		}
		if len(body) < 2 {
			return nil, errMalformed
		}
		what, body := binary.BigEndian.Uint16(body), body[2:]
		switch {
		case what == infoExport && len(body) == 10:
			x.size, x.flags, told = binary.BigEndian.Uint64(body), binary.BigEndian.Uint16(body[8:]), true
		case what == infoBlockSize && len(body) == 12:
			x.least, x.most = binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[8:])
		case what == infoExport || what == infoBlockSize:
			return nil, errMalformed
		}
	}
	return nil, errors.New("the server answers without end")
}

// askByName asks for the export in the old way, in which a refusal is the end of the connection.
func askByName(c net.Conn, name string, bare bool) (*export, error) {
	if err := sendOption(c, optExportName, []byte(name)); err != nil {
		return nil, err
	}
	b := make([]byte, 10+paddingOfExport)
	if bare {
		b = b[:10]
	}
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, fmt.Errorf("the server has no export %q, or it may not be used from here: %w", name, hungUp(err))
	}
	return &export{binary.BigEndian.Uint64(b), binary.BigEndian.Uint16(b[8:]), 1, maxPayload}, nil
}

// usable says why the blocks of a volume cannot be read and written there, if so.
func (x *export) usable() error {
	switch {
	case x.flags&hasFlags == 0:
		return errMalformed
	case x.least > disk.BlockSize:
		return fmt.Errorf("the server takes requests of %d bytes at least, and blocks of a volume have %d",
			x.least, disk.BlockSize)
	case x.most < disk.BlockSize:
		return fmt.Errorf("the server takes requests of %d bytes at most, and blocks of a volume have %d",
			x.most, disk.BlockSize)
	case x.size > 1<<63-1:
		return fmt.Errorf("an export of %d bytes is too large", x.size)
	}
	return nil
}

func sendOption(c net.Conn, option uint32, data []byte) error {
	b := make([]byte, 0, optionSize+len(data))
	b = binary.BigEndian.AppendUint64(b, magicOption)
	b = binary.BigEndian.AppendUint32(b, option)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	_, err := c.Write(append(b, data...))
	if err != nil { // what the server said last tells more, such as that it wants another certificate
		if _, last := c.Read(make([]byte, 1)); last != nil {
			err = last
		}
	}
	return hungUp(err)
}

var errMalformed = errors.New("the server sends what the protocol does not know")

// answer reads one answer to an option.
func answer(c net.Conn, option uint32) (kind uint32, body []byte, err error) {
	var head [answerSize]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, nil, hungUp(err)
	}
	if binary.BigEndian.Uint64(head[:]) != magicAnswer || binary.BigEndian.Uint32(head[8:]) != option {
		return 0, nil, errMalformed
	}
	n := binary.BigEndian.Uint32(head[16:])
	if n > maxAnswer {
		return 0, nil, fmt.Errorf("the server sends an answer of %d bytes", n)
	}
	body = make([]byte, n)
	if _, err := io.ReadFull(c, body); err != nil {
		return 0, nil, hungUp(err)
	}
	return binary.BigEndian.Uint32(head[12:]), body, nil
}

// refusal is an answer that is one, in words. Those of the server, if there are any, come last.
func refusal(kind uint32, text []byte) error {
	why, known := map[uint32]string{
		errUnsupported: "the request is unknown there", errPolicy: "the export may not be used from here",
		errInvalid: "the request is invalid there", errPlatform: "the system there cannot do that",
		errTLSRequired: "TLS is wanted: give nbds:// in place of nbd://", errUnknown: "no such export",
		errShutdown: "the server is stopping", errBlockSizeNeeded: "a client has to know the block size",
		errTooBig: "the request is too large",
	}[kind]
	if !known {
		if kind < answerError {
			return errMalformed
		}
		why = fmt.Sprintf("error %d", kind-answerError)
	}
	if len(text) > 0 {
		why += fmt.Sprintf(" (%q)", text[:min(len(text), 200)])
	}
	return errors.New("the server refuses: " + why)
}

// hungUp says in words what the end of a connection is.
func hungUp(err error) error {
	var late net.Error
	switch {
	case err == io.EOF || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
		return errors.New("the server hung up")
	case err == io.ErrUnexpectedEOF:
		return errors.New("the server hung up in the middle of what it said")
	case errors.As(err, &late) && late.Timeout():
		return errors.New("the server does not answer (some serve one client at a time)")
	}
	return err
}
