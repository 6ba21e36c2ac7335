package console

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/status"
	"github.com/usher-mcp/usher/surface"
)

// toolPage is one tool: what it is, a form to try it, and what came of that.
type toolPage struct {
	toolView
	About   string
	Fields  []field
	JSON    string // what was typed as JSON
	Problem string // what is wrong with it
	Free    bool   // it can only be filled in as JSON
	Confirm bool   // it says of itself that it destroys
	Schema  string
	Output  string
	Run     *runView
}

// runView is a call that was tried.
type runView struct {
	ID      string
	Running bool
	Took    string
	Failed  bool
	Problem surface.Problem
	Content []contentView
	Raw     string
	Cut     bool
}

// contentView is one piece of an answer.
type contentView struct {
	Kind, Text string
	Image      template.URL
}

// Bounds of what is shown of an answer.
const (
	maxShownText  = 64 << 10
	maxShownImage = 4 << 20
	maxContent    = 100
)

// toolNamed finds a tool among those that are known.
func (c *Console) toolNamed(ctx context.Context, account, name string) (Tool, bool) {
	all, err := c.world.Tools(ctx)
	if err != nil {
		return Tool{}, false
	}
	i := slices.IndexFunc(all, func(t Tool) bool { return t.Account == account && t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return all[i], true
}

func (c *Console) toolPage(ctx context.Context, v *screen, q url.Values) {
	t, ok := c.toolNamed(ctx, q.Get("server"), q.Get("name"))
	if !ok {
		v.missing("There is no such tool, or it is not known yet: open its server and read its tools.")
		return
	}
	v.Title, v.Nav, v.body, v.Chosen = plain(t.Name), "tools", "tool", t.Account
	p := toolPage{toolView: viewTool(t), Confirm: mark(t) == "destroys"}
	if !t.Blocked {
		p.About, _ = cutText(plain(jsonx.GetText(t.Definition, "description")), 8<<10)
	}
	schema, _ := jsonx.Get(t.Definition, "inputSchema")
	output, _ := jsonx.Get(t.Definition, "outputSchema")
	p.Schema, p.Output = indented(schema), indented(output)
	p.Fields = fieldsOf(schema)
	p.Free = len(p.Fields) == 0
	if r := c.runs.find(q.Get("run"), t.Account, t.Name); r != nil {
		p.fill(r.form)
		p.Run = c.viewRun(r, v.now)
	}
	v.Page = p
}

// fill puts back what was typed.
func (p *toolPage) fill(form url.Values) {
	for i := range p.Fields {
		p.Fields[i].Value = form.Get(p.Fields[i].Input())
	}
	p.JSON = form.Get("json")
}

func (c *Console) viewRun(r *run, now time.Time) *runView {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := &runView{ID: r.id}
	if !r.done {
		v.Running, v.Took = true, status.Approx(now.Sub(r.began))
		return v
	}
	v.Took = took(r.took)
	if r.err != nil {
		v.Failed, v.Problem = true, c.world.Explain(r.err)
		v.Problem.Text = plain(v.Problem.Text)
		return v
	}
	failed, _ := jsonx.Get(r.result, "isError")
	v.Failed = string(failed) == "true"
	content, _ := jsonx.Get(r.result, "content")
	for e := jsonx.Array(content); e.Next() && len(v.Content) < maxContent; {
		v.Content = append(v.Content, viewContent(e.Value))
	}
	v.Raw, v.Cut = cutText(indented(r.result), maxShownText)
	return v
}

func viewContent(item []byte) contentView {
	v := contentView{Kind: plain(jsonx.GetText(item, "type"))}
	mime := jsonx.GetText(item, "mimeType")
	data := jsonx.GetText(item, "data")
	switch v.Kind {
	case "text":
		v.Text, _ = cutText(plain(jsonx.GetText(item, "text")), maxShownText)
		if inner := indented([]byte(v.Text)); inner != "" {
			v.Text = inner
		}
	case "image":
		v.Text = fmt.Sprintf("image, %s, %s", plain(mime), size(base64.StdEncoding.DecodedLen(len(data))))
		v.Image = picture(mime, data)
	case "audio":
		v.Text = fmt.Sprintf("audio, %s, %s", plain(mime), size(base64.StdEncoding.DecodedLen(len(data))))
	case "resource":
		res, _ := jsonx.Get(item, "resource")
		v.Text, _ = cutText(plain(jsonx.GetText(res, "uri")+"\n"+jsonx.GetText(res, "text")), maxShownText)
	case "resource_link":
		v.Text = plain(jsonx.GetText(item, "uri") + "  " + jsonx.GetText(item, "name"))
	default:
		v.Text, _ = cutText(indented(item), maxShownText)
	}
	return v
}

// picture is an address that holds the picture itself; "" for what is none.
func picture(mime, data string) template.URL {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return ""
	}
	if len(data) > maxShownImage {
		return ""
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return ""
	}
	return template.URL("data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(raw))
}

// indented is JSON for people; "" when it is no object and no array.
func indented(raw []byte) string {
	if kind := jsonx.TypeOf(raw); kind != "object" && kind != "array" {
		return ""
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return ""
	}
	return plain(b.String())
}
