package fake

import (
	"fmt"
	"strings"
)

// What is wrong with the size or the shape of definitions.
var definitionSwitches = []Info{
	{Name: "quadratic-definition", Value: "properties, 20000", Doc: "offers a tool with that many properties, each with a list to be sorted"},
	{Name: "deep-definition", Value: "levels, 800", Doc: "offers a tool whose schema nests that deep"},
	{Name: "huge-definition", Value: "KiB, 2048", Doc: "offers a tool whose description has that size"},
	{Name: "long-names", Value: "tools, 2000", Doc: "offers that many tools more whose names have 4 KiB"},
	{Name: "template-bomb", Value: "templates, 2000", Doc: "offers that many resource templates more, of a thousand expressions each"},
}

// hostileTools are the definitions that the switches add.
func (s *Server) hostileTools() [][]byte {
	var defs [][]byte
	add := func(name, description, schema string) {
		defs = append(defs, fmt.Appendf(nil, `{"name":%q,"description":%q,"inputSchema":%s}`, name, description, schema))
	}
	if v, ok := s.sw.get("quadratic-definition"); ok {
		add("quadratic", "Takes long to read", quadraticSchema(v.number(20000)))
	}
	if v, ok := s.sw.get("deep-definition"); ok {
		n := v.number(800)
		add("deep", "Nests deeply", strings.Repeat(`{"type":["object","array"],"items":`, n)+`{}`+strings.Repeat(`}`, n))
	}
	if v, ok := s.sw.get("huge-definition"); ok {
		add("huge", strings.Repeat("a", v.number(2048)<<10), `{"type":"object"}`)
	}
	if v, ok := s.sw.get("long-names"); ok {
		for i := range v.number(2000) {
			add(fmt.Sprintf("long_%05d_%s", i, strings.Repeat("n", 4<<10)), "", `{"type":"object"}`)
		}
	}
	return defs
}

func quadraticSchema(properties int) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i := range properties {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"p%d":{"required":["b","a"]}`, i)
	}
	b.WriteString(`}}`)
	return b.String()
}

// templateDefs are the resource templates.
func (s *Server) templateDefs() [][]byte {
	defs := [][]byte{[]byte(`{"uriTemplate":"fake://item/{id}","name":"item"}`)}
	if v, ok := s.sw.get("template-bomb"); ok {
		for i := range v.number(2000) {
			defs = append(defs, fmt.Appendf(nil, `{"uriTemplate":"%sb%d","name":"bomb"}`, strings.Repeat("{x}a", 1000), i))
		}
	}
	return defs
}
