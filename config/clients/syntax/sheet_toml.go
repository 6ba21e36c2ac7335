package syntax

import (
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlSheet edits whole tables: [mcp_servers.NAME] with the tables below it, or
// [[mcp_servers]] with its name. Entries that are written inline are left to
// people.
type tomlSheet struct {
	at   Location
	body string
}

// tomlHeader is the line of a table.
type tomlHeader struct {
	at    int // where its line begins
	keys  []string
	array bool
	name  string // what the table says under name
}

// headers lists the tables of the text, in its order.
func (s *tomlSheet) headers() []tomlHeader {
	var out []tomlHeader
	p := unstable.Parser{}
	p.Reset([]byte(s.body))
	for p.NextExpression() {
		n := p.Expression()
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			h := tomlHeader{array: n.Kind == unstable.ArrayTable}
			for it := n.Key(); it.Next(); {
				if len(h.keys) == 0 {
					h.at = strings.LastIndexByte(s.body[:it.Node().Raw.Offset], '\n') + 1
				}
				h.keys = append(h.keys, string(it.Node().Data))
			}
			out = append(out, h)
		case unstable.KeyValue:
			key := n.Key()
			if len(out) > 0 && key.Next() && string(key.Node().Data) == "name" && n.Value().Kind == unstable.String {
				out[len(out)-1].name = string(n.Value().Data)
			}
		}
	}
	return out
}

// span is a part of a text.
type span struct{ from, to int }

// spans are the tables of an entry.
func (s *tomlSheet) spans(name string) []span {
	var out []span
	keys := s.at.Keys
	all := s.headers()
	inside := false
	for i, h := range all {
		if len(h.keys) < len(keys) || !slices.Equal(h.keys[:len(keys)], keys) {
			inside = false
			continue
		}
		if s.at.List {
			if len(h.keys) == len(keys) {
				inside = h.array && h.name == name
			}
		} else {
			inside = len(h.keys) > len(keys) && h.keys[len(keys)] == name
		}
		if !inside {
			continue
		}
		to := len(s.body)
		if i+1 < len(all) {
			to = s.aboveComments(all[i+1].at)
		}
		out = append(out, span{h.at, to})
	}
	return out
}

// aboveComments moves up over the comment lines that belong to what follows.
func (s *tomlSheet) aboveComments(at int) int {
	for at > 0 {
		start := strings.LastIndexByte(s.body[:at-1], '\n') + 1
		if !strings.HasPrefix(strings.TrimSpace(s.body[start:at]), "#") {
			break
		}
		at = start
	}
	return at
}

func (s *tomlSheet) Text(name string) (string, bool) {
	var b strings.Builder
	for _, p := range s.spans(name) {
		b.WriteString(s.body[p.from:p.to])
	}
	return strings.TrimRight(b.String(), "\r\n"), b.Len() > 0
}

func (s *tomlSheet) Put(name string, entry Object) error {
	if err := s.Remove(name, false); err != nil {
		return err
	}
	text, err := EncodeTOML(s.at.Nest(Object{{name, entry}}))
	if err != nil {
		return err
	}
	return s.Paste(name, string(text))
}

// paste appends: a table may stand anywhere.
func (s *tomlSheet) Paste(_, text string) error {
	body := ended(s.body)
	if strings.TrimSpace(body) != "" {
		body += lineBreak(s.body)
	}
	s.body = body + AsIn(s.body, strings.TrimRight(text, "\r\n")+"\n")
	return nil
}

func (s *tomlSheet) Remove(name string, _ bool) error {
	spans := s.spans(name)
	for _, p := range slices.Backward(spans) {
		head, tail := s.body[:p.from], s.body[p.to:]
		if tail == "" { // the blank line that set it apart goes along
			head = strings.TrimSuffix(head, lineBreak(head))
			head = ended(head)
		}
		s.body = head + tail
	}
	return nil
}

func (s *tomlSheet) Bytes() []byte { return []byte(s.body) }
