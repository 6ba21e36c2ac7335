package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/usher-mcp/usher"
	"github.com/usher-mcp/usher/auth/bulk"
)

// loginOne logs in to one server. The answer of the consent page comes to a page of the
// program's own.
func loginOne(ctx context.Context, h *usher.Host, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		if _, err := h.CompleteLogin(r.Context(), r.URL.Query()); err != nil {
			http.Error(w, "the login failed", http.StatusBadRequest)
		}
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	defer s.Close()
	go s.Serve(l)

	login, err := h.Login(ctx, "notes", &usher.LoginOptions{Redirect: "http://" + l.Addr().String() + "/callback"})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "login:", login.Account, login.State != "")
	back, err := browse(ctx, login.URL) // show it to the user instead
	if err != nil {
		return err
	}
	if _, err := get(ctx, back.String()); err != nil { // what the user's browser does
		return err
	}
	if err := login.Wait(ctx); err != nil {
		return err
	}
	_, err = h.Call(ctx, "notes", "echo", nil, nil)
	fmt.Fprintln(out, "logged in:", err == nil)
	return err
}

// loginAll logs in to all servers that need it, with a user interface of the program's
// own: events say how far each login is, rows have its URL and state.
func loginAll(ctx context.Context, h *usher.Host, out io.Writer) error {
	all, err := h.LoginAll(ctx, nil, &usher.LoginOptions{Redirect: "http://127.0.0.1:9/callback"})
	if err != nil {
		return err
	}
	defer all.Close()
	go func() {
		for e := range all.Events().All(ctx) {
			if e.Phase == bulk.PhaseAwaiting {
				complete(ctx, all, e.Server)
			}
		}
	}()
	if err := all.Wait(ctx); err != nil {
		return err
	}
	for _, row := range all.Rows() {
		fmt.Fprintln(out, "login:", row.Server, row.Phase, row.Detail)
	}
	return nil
}

// complete ends one of the logins by its state, or gives it up.
func complete(ctx context.Context, all *usher.Logins, server string) {
	for _, row := range all.Rows() {
		if row.Server != server || row.Login == nil {
			continue
		}
		back, err := browse(ctx, row.Login.AuthorizeURL) // show it to the user instead
		if err != nil {
			_ = all.Cancel(ctx, row.Login.State)
			continue
		}
		q := back.Query()
		_ = all.Complete(ctx, q.Get("state"), q.Get("code"), q.Get("iss")) // a failure is an event too
	}
}

// browse stands in for a user who consents: it returns where the page redirects to.
func browse(ctx context.Context, page string) (*url.URL, error) {
	resp, err := get(ctx, page)
	if err != nil {
		return nil, err
	}
	return resp.Location()
}

func get(ctx context.Context, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return resp, err
}
