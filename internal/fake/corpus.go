package fake

import (
	"context"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
)

// Sample is a tool definition and a result that must cross a host unchanged. Both
// are valid for clients of every revision and hold no line break.
type Sample struct {
	Name   string // what is special about it
	Tool   []byte // raw definition
	Result []byte // raw result of calling it, whatever the arguments
}

// ToolName returns the name of the tool.
func (s Sample) ToolName() string { return jsonx.GetText(s.Tool, "name") }

// Corpus returns the samples that tests of fidelity compare with, byte for byte.
func Corpus() []Sample {
	const complete = `"resultType":"complete"`
	return []Sample{
		{
			Name:   "unknown fields",
			Tool:   []byte(`{"name":"c_unknown","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"},"x-vendor":{"b":1,"a":[null,true]},"_meta":{"com.example/k":"v"}}`),
			Result: []byte(`{"content":[{"type":"text","text":"hi","x-rank":0.10,"annotations":{"audience":["user"],"x":1}}],"x-cost":{"cents":12},` + complete + `,"_meta":{"com.example/trace":"1"}}`),
		},
		{
			Name:   "integers above 2^53",
			Tool:   []byte(`{"name":"c_integers","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":18446744073709551615,"default":9007199254740993}}}}`),
			Result: []byte(`{"content":[],"structuredContent":{"a":9007199254740993,"b":-9007199254740995,"c":18446744073709551616,"d":123456789012345678901234567890,"e":1.0,"f":1E+2,"g":-0,"h":0.1000000000000000055511151231257827},` + complete + `}`),
		},
		{
			Name:   "unknown content types",
			Tool:   []byte(`{"name":"c_content","inputSchema":{"type":"object"},"icons":[{"src":"data:image/svg+xml;base64,PHN2Zy8+","sizes":["any"]}]}`),
			Result: []byte(`{"content":[{"type":"hologram","frames":[[1,2],[3]]},{"type":"resource_link","uri":"fake://x","name":"x"},{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"fake://y","blob":"AA==","x":1}}],` + complete + `}`),
		},
		{
			Name:   "deep schema",
			Tool:   []byte(`{"name":"c_deep","inputSchema":` + deepSchema(200) + `,"outputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},"properties":{"list":{"$ref":"#/$defs/n"}}}}`),
			Result: []byte(`{"content":[],"structuredContent":{"list":` + strings.Repeat(`{"next":`, 200) + `{}` + strings.Repeat(`}`, 200) + `},` + complete + `}`),
		},
		{
			Name:   "non-ASCII names",
			Tool:   []byte(`{"name":"größe_測定_😀","title":"Größe","description":"naïve \u00e9 vs é, \ud83d\ude00 vs 😀","inputSchema":{"type":"object","properties":{"größe":{"type":"number"},"ключ":{"type":"string"}}}}`),
			Result: []byte(`{"content":[{"type":"text","text":"\u00fc ü \u2028 <b>&amp;</b> \/ \" \\ \u0000"}],"structuredContent":{"größe":1,"ключ":"значение","":"empty key"},` + complete + `}`),
		},
		{
			Name:   "odd spacing and order",
			Tool:   []byte(`{ "inputSchema" : {  "type":"object" ,"properties":{ } } ,	"name"  :"c_spacing","description":""   }`),
			Result: []byte(`{	"structuredContent" :{ "z":1 , "a" : [ ] , "m":{ } },"content":[ {"text":"  spaced  ","type":"text"} ] ,` + complete + `  }`),
		},
		{
			Name:   "error with structure",
			Tool:   []byte(`{"name":"c_error","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"x-danger":"high"}}`),
			Result: []byte(`{"isError":true,"content":[{"type":"text","text":"no"}],"structuredContent":{"code":99999999999999999999},` + complete + `}`),
		},
		{
			Name:   "any structured content",
			Tool:   []byte(`{"name":"c_array","inputSchema":{"type":"object","additionalProperties":false},"outputSchema":{"type":"array"}}`),
			Result: []byte(`{"content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2,{"k":null}],` + complete + `}`),
		},
	}
}

func deepSchema(levels int) string {
	return strings.Repeat(`{"type":"object","properties":{"a":`, levels) + `{"type":"string"}` + strings.Repeat(`}}`, levels)
}

// CorpusTools returns the corpus as tools.
func CorpusTools() []Tool {
	var out []Tool
	for _, s := range Corpus() {
		out = append(out, Tool{Def: s.Tool, Handle: func(context.Context, *Call) ([]byte, error) { return s.Result, nil }})
	}
	return out
}
