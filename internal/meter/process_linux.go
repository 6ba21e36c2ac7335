package meter

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// tick is how many parts /proc divides a second into: fixed in the interface of Linux.
const tick = 100

func processUsage() usage {
	u := unknownUsage()
	if text, err := os.ReadFile("/proc/self/stat"); err == nil {
		readStat(&u, text)
	}
	if u.started >= 0 {
		u.started = sinceBoot(u.started)
	}
	if dir, err := os.Open("/proc/self/fd"); err == nil {
		if names, err := dir.Readdirnames(0); err == nil {
			u.openFiles = float64(len(names) - 1) // without the one that reads them
		}
		_ = dir.Close() // was only read
	}
	u.maxFiles, u.maxVirtual = limit(syscall.RLIMIT_NOFILE), limit(syscall.RLIMIT_AS)
	if text, err := os.ReadFile("/proc/self/net/netstat"); err == nil {
		u.networkRead, u.networkSent = octets(string(text))
	}
	return u
}

// readStat reads the line of /proc/PID/stat. The second field is the program's name
// in brackets and may hold anything; started is in seconds since boot.
func readStat(u *usage, text []byte) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return
	}
	fields := strings.Fields(string(text[end+1:]))
	at := func(n int) float64 { // by the number in the manual
		if n-3 >= len(fields) {
			return -1
		}
		v, err := strconv.ParseFloat(fields[n-3], 64)
		if err != nil {
			return -1
		}
		return v
	}
	if user, system := at(14), at(15); user >= 0 && system >= 0 {
		u.cpuSeconds = (user + system) / tick
	}
	if started := at(22); started >= 0 {
		u.started = started / tick
	}
	u.virtual = at(23)
	if pages := at(24); pages >= 0 {
		u.resident = pages * float64(os.Getpagesize())
	}
}

// sinceBoot makes seconds since boot seconds since 1970; -1 when nobody says when
// that was.
func sinceBoot(seconds float64) float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if at, ok := strings.CutPrefix(line, "btime "); ok {
			if boot, err := strconv.ParseFloat(strings.TrimSpace(at), 64); err == nil {
				return boot + seconds
			}
		}
	}
	return -1
}

// limit is a soft limit of this process.
func limit(which int) float64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(which, &l); err != nil {
		return -1
	}
	return float64(l.Cur)
}

// octets reads how many bytes went over the network, of which /proc knows only all of
// the process's network namespace: a line of names, then one of values.
func octets(text string) (read, sent float64) {
	read, sent = -1, -1
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "IpExt:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i := range min(len(names), len(fields)) {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				continue
			}
			switch names[i] {
			case "InOctets":
				read = v
			case "OutOctets":
				sent = v
			}
		}
	}
	return read, sent
}
