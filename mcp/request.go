package mcp

import "context"

// Request is a request to a server together with the callbacks that handle what the
// server sends before it answers. Pass it by value: each layer adds its own fields by
// embedding it and changes its own copy.
type Request struct {
	// Method is the method, such as [MethodToolsCall].
	Method string
	// Params are raw JSON, with `_meta`. Nil: there are none.
	Params []byte
	// OnNotification is called for each notification that belongs to the request:
	// progress with the caller's own token, log messages. It must not block. Nil:
	// they are dropped.
	OnNotification func(Message)
	// OnRequest answers what a server of the legacy protocol asks while the request
	// is in flight. Nil: such questions are refused.
	OnRequest Responder

	fields   Params // what was read of parsed
	parsed   []byte // the Params that fields were read from
	isParsed bool
}

// Responder answers a request of a server (elicitation, sampling, roots): with the raw
// result, or with an error for the server. ctx is cancelled when the server no longer
// waits for the answer.
type Responder func(ctx context.Context, method string, params []byte) ([]byte, *Error)

// ReadParams returns the fields of r.Params that a host decides on, see [ReadParams].
// They are parsed once and carried along with copies of r. Params that have been
// replaced since are parsed again, so that nothing is decided on fields of other bytes.
func (r *Request) ReadParams() (Params, *Error) {
	if r.isParsed && same(r.parsed, r.Params) {
		return r.fields, nil
	}
	p, err := ReadParams(r.Params)
	if err != nil {
		return Params{}, err
	}
	r.fields, r.parsed, r.isParsed = p, r.Params, true
	return p, nil
}

// same reports whether a and b are the same bytes in memory. Nobody changes params in
// place: they are parts of the received message.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
