package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/usher-mcp/usher/gateway/internal/stream"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// Several gateways may stand behind one address, each request going to any of them.
// What only one of them has, a session of the legacy protocol or a suspended call, is found
// by the address of its owner, which is sealed into the session's id and the
// call's state: the others hand such requests on, and nothing has to be written
// down. When the owner is gone the agent is told to start again, as the
// specification has it: 404 for a session.

// headerForwarded marks a request that was handed on. It is not handed on again.
const headerForwarded = "Usher-Forwarded"

// peerDial is how long the owner of a session may take to accept a connection.
const peerDial = 2 * time.Second

// sessionAAD keeps ids of sessions and states of calls apart.
const sessionAAD = "session"

// newSessionID names a session, and where it lives if there are other gateways.
func (g *Gateway) newSessionID() string {
	if g.opt.Peer == "" {
		return rand.Text()
	}
	s := g.seal
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(g.opt.Peer)+s.aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, []byte(g.opt.Peer), []byte(sessionAAD)))
}

// owner says which gateway made a session's id, "" when none of ours did.
func (g *Gateway) owner(id string) string {
	s := g.seal
	raw, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(raw) < s.aead.NonceSize() {
		return ""
	}
	peer, err := s.aead.Open(nil, raw[:s.aead.NonceSize()], raw[s.aead.NonceSize():], []byte(sessionAAD))
	if err != nil {
		return ""
	}
	return string(peer)
}

// elsewhere hands a request on whose session another gateway has, and reports
// whether it did.
func (g *Gateway) elsewhere(w http.ResponseWriter, r *http.Request) bool {
	if g.opt.Peer == "" || r.Header.Get(headerForwarded) != "" {
		return false
	}
	id := r.Header.Get(wire.HeaderSession)
	if id == "" && strings.Contains(r.URL.RawQuery, "sessionId") {
		id = r.URL.Query().Get("sessionId")
	}
	if id == "" {
		return false
	}
	peer := g.owner(id)
	if peer == "" || peer == g.opt.Peer {
		return false
	}
	// The whole body first: a fast answer would end the reading of the rest.
	body, status := g.readBody(w, r)
	if status != 0 {
		http.Error(w, http.StatusText(status), status)
		return true
	}
	g.forward(w, r, peer, body, func(w http.ResponseWriter) {
		http.Error(w, "the gateway that had this session is gone; send initialize again", http.StatusNotFound)
	})
	return true
}

// retryElsewhere is the same for the retry of a call that another gateway suspended.
func (g *Gateway) retryElsewhere(w http.ResponseWriter, r *http.Request, q *request, body []byte) bool {
	if g.opt.Peer == "" || !q.p.Retry || r.Header.Get(headerForwarded) != "" {
		return false
	}
	st, bad := g.resumes(q)
	if bad != nil || st.Kind != stateSuspended || st.Peer == "" || st.Peer == g.opt.Peer {
		return false
	}
	g.forward(w, r, st.Peer, body, func(w http.ResponseWriter) {
		gone := mcp.Errorf(mcp.CodeInvalidParams, "the gateway that ran this call is gone, and whether it has run is not known")
		stream.WriteJSON(w, http.NewResponseController(w), http.StatusOK, appendError(nil, q.id, gone))
	})
	return true
}

// forward hands a request on as it is: the owner finds out by itself who sent it. gone
// answers it when the owner cannot be reached; one that is lost later may have run it.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request, peer string, body []byte, gone func(http.ResponseWriter)) {
	target, err := url.Parse(peer)
	if err != nil {
		gone(w)
		return
	}
	g.count.forwarded.Add(1)
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	proxy := &httputil.ReverseProxy{
		Transport:     g.peers,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(g.opt.Log.Handler(), slog.LevelWarn),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host
			p.Out.Header.Set(headerForwarded, "1")
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			g.opt.Log.Warn("a request could not be handed on", "to", peer, "error", err)
			if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
				gone(w)
				return
			}
			if r.Context().Err() == nil {
				http.Error(w, "the gateway that has this session was lost; whether the request has run is not known", http.StatusBadGateway)
			}
		},
	}
	proxy.ServeHTTP(w, r)
}

// newPeers carries requests to other gateways.
func newPeers() *http.Transport {
	dialer := &net.Dialer{Timeout: peerDial}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, addr)
		},
		MaxIdleConnsPerHost: 64, IdleConnTimeout: idleTimeout / 2, DisableCompression: true,
	}
}
