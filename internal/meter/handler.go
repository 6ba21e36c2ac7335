package meter

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// atOnce is how many may scrape at the same time: each has everybody asked.
const atOnce = 4

// contentType is the text format with the names as they are; scrapers of the third
// generation want to be told.
const contentType = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

// Handler serves the registry to scrapers, compressed for those who take it. name[]
// in the query asks for some families only. More than 4 at once are answered 503.
func (r *Registry) Handler() http.Handler {
	slots := make(chan struct{}, atOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, fmt.Sprintf("%d scrapes are already in progress; try again later", atOnce), http.StatusServiceUnavailable)
			return
		}
		families := r.Gather()
		if names := req.URL.Query()["name[]"]; len(names) > 0 {
			families = slices.DeleteFunc(families, func(f Family) bool { return !slices.Contains(names, f.Name) })
		}
		text := AppendText(nil, families)
		h := w.Header()
		h.Set("Content-Type", contentType)
		h.Add("Vary", "Accept-Encoding")
		// Whoever does not take the answer is gone: there is nobody to tell.
		if takesGzip(req.Header) {
			h.Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(text)
			_ = z.Close()
			return
		}
		h.Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text)
	})
}

// takesGzip reads Accept-Encoding.
func takesGzip(h http.Header) bool {
	for _, line := range h.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			coding, params, _ := strings.Cut(part, ";")
			if coding = strings.TrimSpace(coding); !strings.EqualFold(coding, "gzip") && coding != "*" {
				continue
			}
			weight, ok := strings.CutPrefix(strings.TrimSpace(params), "q=")
			q, err := strconv.ParseFloat(weight, 64)
			return !ok || err == nil && q > 0
		}
	}
	return false
}
