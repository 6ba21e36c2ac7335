package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/usher-mcp/usher/vault"
)

// Chain is what [Verify] found about the blocks of one process.
type Chain struct {
	Writer  string `json:"writer"`
	Process string `json:"process"` // host:pid
	// First and Last are the numbers of the blocks that are there. A First above 1
	// means that older ones were removed.
	First   int64     `json:"first_block"`
	Last    int64     `json:"last_block"`
	Records int64     `json:"acts"`
	From    time.Time `json:"from"` // of the first record
	To      time.Time `json:"to"`
	Hash    string    `json:"hash"` // of the last block
	Lost    int64     `json:"lost"` // records that the process could not keep
	Closed  bool      `json:"closed"`
	// Unkeyed is how many blocks carry no authentication code, because an older usher
	// wrote them: somebody who can write the database could have written them too.
	Unkeyed int64 `json:"unkeyed_blocks"`
	// Problems say what does not fit, empty when all does.
	Problems []string `json:"problems,omitempty"`

	keyed bool // a block had a code
}

// Head is where a chain stood at an earlier time. Heads that are kept elsewhere
// show when somebody rewrote a chain from its beginning, or cut off its end.
type Head struct {
	Writer string    `json:"writer"`
	Last   int64     `json:"last_block"`
	To     time.Time `json:"to"`
	Hash   string    `json:"hash"`
}

// Verify reads the whole log and checks that every block is what its hash says,
// was written with the key, unless that is nil, and follows the one before it; and
// that the log still holds all heads that were seen before, unless they are older
// than kept. Without such heads nobody can tell that the end of a chain, or all of it,
// was removed.
func Verify(ctx context.Context, s vault.Audits, key *Key, heads []Head, kept time.Time) ([]Chain, error) {
	v := verifier{key: key, chains: map[string]*Chain{}, heads: map[string]Head{}}
	for _, h := range heads {
		v.heads[h.Writer] = h
	}
	for b, err := range Blocks(ctx, s, 0) {
		if err != nil {
			return nil, fmt.Errorf("verify the audit log: %w", err)
		}
		v.add(b)
	}
	v.missing(kept)
	out := []Chain{}
	for _, c := range slices.SortedFunc(maps.Values(v.chains), func(a, b *Chain) int {
		if n := a.From.Compare(b.From); n != 0 {
			return n
		}
		return strings.Compare(a.Writer, b.Writer)
	}) {
		out = append(out, *c)
	}
	return out, nil
}

type verifier struct {
	key    *Key
	chains map[string]*Chain
	heads  map[string]Head
}

func (v *verifier) chain(writer string) *Chain {
	c := v.chains[writer]
	if c == nil {
		c = &Chain{Writer: writer}
		v.chains[writer] = c
	}
	return c
}

func (v *verifier) add(b Block) {
	c := v.chain(b.Writer)
	if b.Problem != nil {
		c.Problems = append(c.Problems, b.Problem.Error())
		return
	}
	if b.Number == c.Last && b.Hash == c.Hash {
		return // written twice: the store's first answer got lost
	}
	c.follow(b)
	if problem := v.key.check(b); problem != "" {
		c.Problems = append(c.Problems, problem)
	}
	switch {
	case b.Key != "":
		c.keyed = true
	case c.keyed:
		c.Problems = append(c.Problems, fmt.Sprintf("block %d carries no authentication code, but an earlier one does", b.Number))
		fallthrough
	default:
		c.Unkeyed++
	}
	if h, known := v.heads[b.Writer]; known && h.Last == b.Number && h.Hash != b.Hash {
		c.Problems = append(c.Problems, fmt.Sprintf("block %d is another one than when it was seen before", b.Number))
	}
	c.Last, c.Hash, c.Process = b.Number, b.Hash, b.Process
	c.Lost += b.Lost
	c.Records += int64(len(b.Records))
	c.Closed = b.End
	for _, a := range b.Records {
		if c.From.IsZero() {
			c.From = a.At
		}
		c.To = a.At
	}
}

// follow checks that b is the next block of the chain.
func (c *Chain) follow(b Block) {
	switch {
	case c.Last == 0:
		c.First = b.Number
		if b.Number == 1 && b.Prev != "" {
			c.Problems = append(c.Problems, "the first block names one before it")
		}
	case c.Closed:
		c.Problems = append(c.Problems, fmt.Sprintf("block %d stands after the end of the chain", b.Number))
	case b.Number != c.Last+1:
		c.Problems = append(c.Problems, fmt.Sprintf("after block %d comes block %d: what stood between is gone", c.Last, b.Number))
	case b.Prev != c.Hash:
		c.Problems = append(c.Problems, fmt.Sprintf("block %d does not follow block %d: one of them is another one than was written", b.Number, c.Last))
	}
}

// missing finds what was seen before and is not there any more.
func (v *verifier) missing(kept time.Time) {
	for _, h := range v.heads {
		c := v.chains[h.Writer]
		switch {
		case h.To.Before(kept) && c == nil:
		case c == nil:
			c = v.chain(h.Writer)
			c.Problems = append(c.Problems, fmt.Sprintf("the whole chain is gone, which had %d blocks", h.Last))
		case c.Last < h.Last:
			c.Problems = append(c.Problems, fmt.Sprintf("the end is gone: block %d was seen before, the last one is %d", h.Last, c.Last))
		}
	}
}
