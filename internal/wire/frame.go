package wire

import (
	"bytes"
	"fmt"
)

// TooLongError says that a frame is larger than allowed. It is reported as soon as
// the limit is passed; the next read throws the rest away, so reading can go on.
type TooLongError struct {
	Limit  int64
	Size   int64  // bytes seen so far, more than Limit
	Prefix []byte // its first bytes, enough to [mcp.Peek] at the id in most messages
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("a message is larger than the limit of %d bytes", e.Limit)
}

// prefixLen is how much of an oversized frame is kept to look for its id.
const prefixLen = 4096

const (
	minChunk = 4 << 10
	maxChunk = 1 << 20
)

// frame gathers the bytes of one frame up to a limit. It collects chunks and joins
// them once, at the end: growing one slice would keep and leave behind several times
// the frame's size, and it is the peer who chooses that size.
type frame struct {
	max   int64
	size  int64
	first []byte // the first part as it came: most frames have no other
	more  [][]byte
}

// add appends p. When that passes the limit it drops what it has and returns the
// error to report.
func (f *frame) add(p []byte) *TooLongError {
	if f.size+int64(len(p)) > f.max {
		err := &TooLongError{Limit: f.max, Size: f.size + int64(len(p)), Prefix: f.prefix(p)}
		f.reset()
		return err
	}
	if f.size += int64(len(p)); f.first == nil {
		f.first = bytes.Clone(p)
		return nil
	}
	if len(f.more) > 0 {
		last := &f.more[len(f.more)-1]
		n := min(cap(*last)-len(*last), len(p))
		*last, p = append(*last, p[:n]...), p[n:]
	}
	if len(p) > 0 {
		next := min(max(int(f.size), minChunk), maxChunk)
		f.more = append(f.more, append(make([]byte, 0, max(next, len(p))), p...))
	}
	return nil
}

func (f *frame) prefix(rest []byte) []byte {
	out := bytes.Clone(f.first[:min(len(f.first), prefixLen)])
	for _, c := range append(f.more, rest) {
		out = append(out, c[:min(len(c), prefixLen-len(out))]...)
	}
	return out
}

// take returns the bytes in one slice and empties the frame.
func (f *frame) take() []byte {
	out := f.first
	if len(f.more) > 0 {
		out = append(make([]byte, 0, f.size), f.first...)
		for _, c := range f.more {
			out = append(out, c...)
		}
	}
	f.reset()
	return out
}

func (f *frame) reset() { f.size, f.first, f.more = 0, nil, nil }

// lineEnd returns the offset of the first CR or LF in b, len(b) when there is none.
// It searches in windows: else a text with only one of them would be searched to its
// end for the other, line after line.
func lineEnd(b []byte) int {
	for at := 0; at < len(b); at += 512 {
		window := b[at:min(at+512, len(b))]
		end := bytes.IndexByte(window, '\n')
		if end >= 0 {
			window = window[:end]
		}
		if i := bytes.IndexByte(window, '\r'); i >= 0 {
			end = i
		}
		if end >= 0 {
			return at + end
		}
	}
	return len(b)
}
