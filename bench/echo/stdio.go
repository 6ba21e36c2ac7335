package main

import (
	"bufio"
	"io"
	"sync"
	"time"
)

// serveStdio answers line by line. A call that is to take long is answered later and
// holds up nobody.
func (e *echo) serveStdio(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 1<<20)
	var mu sync.Mutex // guards out
	var body []byte
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil // the host has left
		}
		var wait int
		if body, wait = e.answer(body[:0], line); len(body) == 0 {
			continue
		}
		body = append(body, '\n')
		if wait > 0 {
			late := append([]byte(nil), body...)
			time.AfterFunc(time.Duration(wait)*time.Millisecond, func() {
				mu.Lock()
				defer mu.Unlock()
				_, _ = out.Write(late) // the host has left
			})
			continue
		}
		mu.Lock()
		_, err = out.Write(body)
		mu.Unlock()
		if err != nil {
			return nil // the host has left
		}
	}
}
