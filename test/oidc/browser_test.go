package oidc

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// browser is a person with a browser: it fills in the pages of the authorization
// server until they lead away from it or there is nothing left to fill in.
type browser struct {
	client *http.Client
	home   string            // host of the authorization server
	fill   map[string]string // what to type into which field
	deny   bool              // follow the link that cancels when asked for consent
}

func newBrowser(t *testing.T, c *http.Client, issuer string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{home: strings.TrimPrefix(issuer, "http://"), fill: map[string]string{"login": "ada", "password": "secret"}}
	b.client = &http.Client{Transport: c.Transport, Jar: jar, CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if req.URL.Host != b.home {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return b
}

var (
	formTag   = regexp.MustCompile(`(?s)<form[^>]*\saction="([^"]*)"[^>]*>(.*?)</form>`)
	inputTag  = regexp.MustCompile(`(?s)<input[^>]*>`)
	nameAttr  = regexp.MustCompile(`\sname="([^"]*)"`)
	valueAttr = regexp.MustCompile(`\svalue="([^"]*)"`)
	abortLink = regexp.MustCompile(`href="([^"]*/abort)"`)
)

// visit goes through the pages from address on. It returns the address they lead
// to, or the text of the last page.
func (b *browser) visit(address string) (away *url.URL, page string, err error) {
	resp, err := b.client.Get(address)
	denied := false
	for range 10 {
		if err != nil {
			return nil, "", err
		}
		body, err2 := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err2 != nil {
			return nil, "", err2
		}
		if to, err := resp.Location(); err == nil {
			return to, "", nil
		}
		page = string(body)
		if resp.StatusCode != http.StatusOK {
			return nil, "", fmt.Errorf("%s: HTTP %d: %s", resp.Request.URL.Path, resp.StatusCode, page)
		}
		form := formTag.FindStringSubmatch(page)
		cancel := abortLink.FindStringSubmatch(page)
		switch {
		case form == nil || denied:
			return nil, page, nil
		case b.deny && cancel != nil:
			denied = true
			resp, err = b.client.Get(html.UnescapeString(cancel[1]))
		default:
			resp, err = b.client.PostForm(html.UnescapeString(form[1]), b.fields(form[2]))
		}
	}
	return nil, "", fmt.Errorf("the pages have no end; the last one: %s", page)
}

// fields fills in a form.
func (b *browser) fields(form string) url.Values {
	out := url.Values{}
	for _, tag := range inputTag.FindAllString(form, -1) {
		name := nameAttr.FindStringSubmatch(tag)
		if name == nil {
			continue
		}
		value := b.fill[name[1]]
		if given := valueAttr.FindStringSubmatch(tag); value == "" && given != nil {
			value = html.UnescapeString(given[1])
		}
		out.Set(name[1], value)
	}
	return out
}
