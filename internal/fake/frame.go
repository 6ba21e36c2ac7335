package fake

import (
	"bytes"
	"io"
	"time"

	"github.com/usher-mcp/usher/mcp"
)

// frame is one message on its way out: head, pad filler bytes, tail. The filler is
// made while writing, so that a frame of 100 MB costs nothing here.
type frame struct {
	head []byte
	pad  int64
	tail []byte

	status int  // HTTP status when it is the only answer to a POST; 0 is 200
	noise  bool // no message at all, but garbage
}

func newFrame(message []byte) frame { return frame{head: message} }

func notification(method string, params []byte) frame {
	return newFrame(mcp.AppendNotification(nil, method, params))
}

func (f frame) size() int64 { return int64(len(f.head)) + f.pad + int64(len(f.tail)) }

// half returns the first half of f.
func (f frame) half() frame {
	if f.pad > 0 {
		return frame{head: f.head, pad: f.pad / 2}
	}
	return frame{head: f.head[:len(f.head)/2]}
}

func (f frame) writeTo(w io.Writer) error {
	if _, err := w.Write(f.head); err != nil {
		return err
	}
	filler := bytes.Repeat([]byte("x"), int(min(f.pad, 64<<10)))
	for left := f.pad; left > 0; left -= int64(len(filler)) {
		if _, err := w.Write(filler[:min(left, int64(len(filler)))]); err != nil {
			return err
		}
	}
	if len(f.tail) == 0 {
		return nil
	}
	_, err := w.Write(f.tail)
	return err
}

// slowWriter writes one byte per pause.
type slowWriter struct {
	w     io.Writer
	pause time.Duration
	stop  <-chan struct{}
	flush func()
}

func (s slowWriter) Write(p []byte) (int, error) {
	tick := time.NewTicker(s.pause)
	defer tick.Stop()
	for i := range p {
		select {
		case <-tick.C:
		case <-s.stop:
			return i, io.ErrClosedPipe
		}
		if _, err := s.w.Write(p[i : i+1]); err != nil {
			return i, err
		}
		s.flush()
	}
	return len(p), nil
}
