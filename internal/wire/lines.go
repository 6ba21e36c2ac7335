package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// Lines reads newline-delimited frames of bounded size.
type Lines struct {
	r       *bufio.Reader
	max     int64
	midLine bool // the rest of an oversized line is to be thrown away
}

// NewLines reads frames of at most max bytes, line end not counted, from r.
func NewLines(r io.Reader, max int64) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 32<<10), max: max}
}

// Next returns the next line that is not blank, without its line end. The slice
// belongs to the caller. A line above the limit yields a *TooLongError and reading
// may go on; every other error is final. At the end of input a last line without
// line end is returned first where it is whole; what a dying writer cut off is not.
func (l *Lines) Next() ([]byte, error) {
	if err := l.skipRest(); err != nil {
		return nil, err
	}
	for {
		line, err := l.line()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		blank := len(bytes.Trim(line, " \t\r\n")) == 0
		if !blank && (err == nil || jsonx.Valid(line) == nil) {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (l *Lines) line() ([]byte, error) {
	f := frame{max: l.max}
	for {
		part, err := l.r.ReadSlice('\n')
		whole := !errors.Is(err, bufio.ErrBufferFull)
		if whole {
			part = bytes.TrimSuffix(bytes.TrimSuffix(part, []byte("\n")), []byte("\r"))
		} else if part[len(part)-1] == '\r' && l.r.UnreadByte() == nil {
			part = part[:len(part)-1] // it may belong to the line end
		}
		if tooLong := f.add(part); tooLong != nil {
			l.midLine = !whole
			return nil, tooLong
		}
		if whole {
			return f.take(), err
		}
	}
}

func (l *Lines) skipRest() error {
	for l.midLine {
		_, err := l.r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		l.midLine = false
		if err != nil {
			return err
		}
	}
	return nil
}

// AppendLine appends message as one line. Line breaks between its tokens, which are
// legal JSON, become spaces: left as they are they would make several frames of one
// message, and a nested object that stands on a line of its own would be a message
// that nobody has checked. No JSON string can hold a raw line break, so nothing else
// changes.
func AppendLine(dst, message []byte) []byte {
	at := len(dst)
	dst = append(dst, message...)
	for line := dst[at:]; ; {
		i := lineEnd(line)
		if i == len(line) {
			return append(dst, '\n')
		}
		line[i] = ' '
		line = line[i+1:]
	}
}
