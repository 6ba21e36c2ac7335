package audit

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// Record is something that was done, for the audit log: who asked which server for
// what, and how it ended. It holds no secret and no argument, only their hash.
type Record struct {
	At        time.Time // when it had ended
	Principal string
	Server    string
	Account   string // empty for the default one
	Method    string // such as tools/call
	Target    string // tool, prompt or resource
	// Arguments is the SHA-256 of the arguments' bytes as they were sent; zero when
	// there were none.
	Arguments [32]byte
	Outcome   string // in the words of policy: "ok", "denied", …
	Took      time.Duration
	Bytes     int // of the answer
}

// recordJSON is how a record is shown, and how it stood in blocks of version 1. The keys
// are never renamed.
type recordJSON struct {
	At        time.Time `json:"at"`
	Principal string    `json:"principal"`
	Server    string    `json:"server"`
	Account   string    `json:"account,omitempty"`
	Method    string    `json:"method"`
	Target    string    `json:"target,omitempty"`
	Arguments string    `json:"arguments_sha256,omitempty"`
	Outcome   string    `json:"outcome"`
	Took      int64     `json:"took_us"`
	Bytes     int       `json:"bytes"`
}

// MarshalJSON writes the record as it is shown. It is by hand because an export has
// millions: reflection would cost ten times as much.
func (a Record) MarshalJSON() ([]byte, error) {
	dst := append(make([]byte, 0, 320), `{"at":"`...)
	dst = a.At.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = jsonx.AppendText(append(dst, `","principal":`...), a.Principal)
	dst = jsonx.AppendText(append(dst, `,"server":`...), a.Server)
	if a.Account != "" {
		dst = jsonx.AppendText(append(dst, `,"account":`...), a.Account)
	}
	dst = jsonx.AppendText(append(dst, `,"method":`...), a.Method)
	if a.Target != "" {
		dst = jsonx.AppendText(append(dst, `,"target":`...), a.Target)
	}
	if a.Arguments != [32]byte{} {
		dst = hex.AppendEncode(append(dst, `,"arguments_sha256":"`...), a.Arguments[:])
		dst = append(dst, '"')
	}
	dst = jsonx.AppendText(append(dst, `,"outcome":`...), a.Outcome)
	dst = strconv.AppendInt(append(dst, `,"took_us":`...), a.Took.Microseconds(), 10)
	dst = strconv.AppendInt(append(dst, `,"bytes":`...), int64(a.Bytes), 10)
	return append(dst, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Record) UnmarshalJSON(line []byte) error {
	var j recordJSON
	if err := json.Unmarshal(line, &j); err != nil {
		return err
	}
	*a = Record{
		At: j.At, Principal: j.Principal, Server: j.Server, Account: j.Account, Method: j.Method, Target: j.Target,
		Outcome: j.Outcome, Took: time.Duration(j.Took) * time.Microsecond, Bytes: j.Bytes,
	}
	_, err := hex.Decode(a.Arguments[:], []byte(j.Arguments[:min(len(j.Arguments), 64)]))
	return err
}
