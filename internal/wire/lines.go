package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// TooLongError says that a frame was larger than allowed. Its rest has been read
// and thrown away, so reading can go on.
type TooLongError struct {
	Limit  int64
	Size   int64  // bytes seen; the frame may have been cut by the end of input
	Prefix []byte // its first bytes, enough to find the id in most messages
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("a message of %d bytes is larger than the limit of %d", e.Size, e.Limit)
}

// prefixLen is how much of an oversized frame is kept to look for its id.
const prefixLen = 4096

// Lines reads newline-delimited frames of bounded size.
type Lines struct {
	r   *bufio.Reader
	max int64
}

// NewLines reads frames of at most max bytes from r.
func NewLines(r io.Reader, max int64) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 32<<10), max: max}
}

// Next returns the next line that is not blank, without its line end. The slice
// belongs to the caller. A line above the limit yields a *TooLongError and reading
// may go on; every other error is final. At the end of input a last line without
// line end is returned first.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.line()
		if line = bytes.TrimRight(line, "\r\n"); len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (l *Lines) line() ([]byte, error) {
	var line []byte
	for {
		chunk, err := l.r.ReadSlice('\n')
		if int64(len(line)+len(chunk)) > l.max {
			return nil, l.discard(append(line, chunk...), err)
		}
		line = append(line, chunk...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// discard throws the rest of a line away. What was read of it so far is dropped
// but for a prefix.
func (l *Lines) discard(head []byte, err error) error {
	tooLong := &TooLongError{Limit: l.max, Size: int64(len(head)), Prefix: bytes.Clone(head[:min(len(head), prefixLen)])}
	for errors.Is(err, bufio.ErrBufferFull) {
		var chunk []byte
		chunk, err = l.r.ReadSlice('\n')
		tooLong.Size += int64(len(chunk))
	}
	return tooLong
}
