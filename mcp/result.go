package mcp

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// ResultType returns the `resultType` of a result; absent means complete, and ""
// that it is not a string.
func ResultType(result []byte) string {
	v, ok := jsonx.Get(result, "resultType")
	if !ok {
		return ResultComplete
	}
	s, _ := jsonx.Text(v)
	return s
}

// Freshness is how long and for whom a result may be kept.
type Freshness struct {
	TTL    time.Duration // 0: not at all
	Public bool          // may be shared across authorization contexts
	Stated bool          // the server gave a number itself, be it 0
}

// maxTTL keeps absurd values from overflowing: nobody keeps a result for longer.
const maxTTL = 365 * 24 * time.Hour

// ReadFreshness reads ttlMs and cacheScope of a result. Absent, negative and
// unreadable ttlMs mean 0; an absent scope means private. A server that says either
// of them twice has said nothing.
func ReadFreshness(result []byte) Freshness {
	var f Freshness
	ttls, scopes := 0, 0
	for m := jsonx.Object(result); m.Next(); {
		switch string(m.Key) {
		case "ttlMs":
			ttls++
			f.TTL, f.Stated = readTTL(m.Value)
		case "cacheScope":
			scopes++
			s, _ := jsonx.Text(m.Value)
			f.Public = s == "public"
		}
	}
	if ttls > 1 || scopes > 1 {
		return Freshness{}
	}
	return f
}

func readTTL(raw []byte) (ttl time.Duration, stated bool) {
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	ms = math.Max(0, math.Min(ms, float64(maxTTL/time.Millisecond)))
	return time.Duration(ms * float64(time.Millisecond)), true
}
