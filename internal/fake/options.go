package fake

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// Options say what a Server offers and how it misbehaves. The zero value is a
// well-behaved server with [DefaultTools] that speaks every revision.
type Options struct {
	Name         string     // serverInfo.name, and the name in the ledger; default "fake"
	Versions     []string   // revisions it speaks; default all
	Instructions string     // default none
	Tools        []Tool     // default DefaultTools
	Prompts      []Prompt   // default one prompt, "greet"
	Resources    []Resource // default one resource, "fake://readme"
	PageSize     int        // entries per page of a list; default all on one page
	ListTTL      int        // ttlMs of cacheable results of the stateless protocol; default 0
	CacheScope   string     // cacheScope of the same; default "private"
	Switches     []string   // misbehaviours, in the form of [ParseSwitch]; default none
	Ledger       *Ledger    // default a new one in memory
	Stderr       io.Writer  // where chatter goes; default nowhere

	// Exit ends the process. By default there is no process of its own: what would
	// have ended it ends the connection instead.
	Exit func(code int)
}

// Tool is a definition that is sent as it stands and what answers its calls.
type Tool struct {
	Def    []byte
	Handle Handler
}

// Handler answers a call with a raw result. A *mcp.Error becomes a JSON-RPC
// error, any other error a result with isError.
type Handler func(ctx context.Context, c *Call) ([]byte, error)

// Prompt is a definition that is sent as it stands and the answer to prompts/get.
type Prompt struct{ Def, Result []byte }

// Resource is a definition that is sent as it stands and the answer to
// resources/read.
type Resource struct{ Def, Result []byte }

// ErrExited is returned by ServeStdio when a misbehaviour ended the server.
var ErrExited = errors.New("the fake server exited")

// Server is a fake MCP server. It serves any number of connections; Close ends
// them all.
type Server struct {
	opts   Options
	ledger *Ledger
	sw     *switchSet
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex // guards what follows
	tools    []Tool
	sessions map[string]*session
	listens  map[*listen]bool
	closed   bool
	started  int
	lists    int
	changes  int
	requests int
}

// New makes a server. It panics when a switch is unknown; use [ParseSwitch] to
// check foreign input first.
func New(o *Options) *Server {
	if o == nil {
		o = &Options{}
	}
	s := &Server{opts: *o, ledger: o.Ledger, sessions: map[string]*session{}, listens: map[*listen]bool{}}
	if s.opts.Name == "" {
		s.opts.Name = "fake"
	}
	if s.opts.Versions == nil {
		s.opts.Versions = mcp.Versions()
	}
	if s.opts.Stderr == nil {
		s.opts.Stderr = io.Discard
	}
	if s.opts.Prompts == nil {
		s.opts.Prompts = defaultPrompts()
	}
	if s.opts.Resources == nil {
		s.opts.Resources = defaultResources()
	}
	if s.ledger == nil {
		s.ledger = NewLedger()
	}
	s.tools = slices.Clone(o.Tools)
	if o.Tools == nil {
		s.tools = DefaultTools()
	}
	s.sw = newSwitchSet(o.Switches)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Ledger returns what the server was asked so far.
func (s *Server) Ledger() *Ledger { return s.ledger }

// Set turns a switch on, or changes it, while the server runs. It panics when the
// switch is unknown.
func (s *Server) Set(text string) { s.sw.set(mustParse(text)) }

// Clear turns a switch off.
func (s *Server) Clear(name string) { s.sw.clear(name) }

// Close ends all connections and waits for everything that runs. Close it before
// the http.Server that serves its handlers.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
}

// enter registers something that Close waits for. After Close it reports false.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}

// spawn runs f until it returns; f must end when the server's context does.
func (s *Server) spawn(f func()) {
	if !s.enter() {
		return
	}
	go func() {
		defer s.wg.Done()
		f()
	}()
}

// SetTools replaces the tools and tells every client that listens.
func (s *Server) SetTools(tools []Tool) {
	s.mu.Lock()
	s.tools = slices.Clone(tools)
	s.mu.Unlock()
	s.broadcast(mcp.MethodNotifyTools, nil)
}

// Touch tells every client that subscribed to a resource that it changed.
func (s *Server) Touch(uri string) {
	s.broadcast(mcp.MethodNotifyUpdated, jsonx.Set(nil, "uri", jsonx.Quote(uri)))
}

// EndListens ends all subscriptions/listen requests with a result, as a server
// that shuts down in order does.
func (s *Server) EndListens() {
	for _, l := range s.allListens() {
		l.finish()
	}
}

// LoseSessions forgets every session, as a server that restarted does.
func (s *Server) LoseSessions() {
	for _, sess := range s.allSessions() {
		s.drop(sess)
	}
}

func (s *Server) legacyVersions() []string {
	return slices.DeleteFunc(slices.Clone(s.opts.Versions), mcp.Stateless)
}

// speaksModern reports whether requests of the modern era are served. Servers that
// cannot stand the probe are of the other era.
func (s *Server) speaksModern() bool {
	for _, name := range []string{"silent-probe", "exit-on-probe"} {
		if _, on := s.sw.get(name); on {
			return false
		}
	}
	return slices.ContainsFunc(s.opts.Versions, mcp.Stateless)
}

// newestLegacy is the version offered to a client that asks for an unknown one.
func (s *Server) newestLegacy() string {
	if v := s.legacyVersions(); len(v) > 0 {
		return slices.Max(v)
	}
	return ""
}

func (s *Server) allSessions() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*session, 0, len(s.sessions))
	for _, sess := range s.sessions {
		all = append(all, sess)
	}
	return all
}

func (s *Server) session(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// open makes a session. One with an id can be found again until it is dropped.
func (s *Server) open(parent context.Context, transport string, lasting bool) *session {
	sess := &session{srv: s, transport: transport, asks: map[mcp.ID]chan mcp.Message{}, calls: map[mcp.ID]context.CancelCauseFunc{}, streams: map[string]*stream{}}
	sess.ctx, sess.cancel = context.WithCancelCause(parent)
	s.mu.Lock()
	defer s.mu.Unlock()
	if lasting {
		s.started++
		sess.id = s.opts.Name + "-" + strconv.Itoa(s.started)
		s.sessions[sess.id] = sess
	}
	return sess
}

// drop forgets a session and ends what runs in it.
func (s *Server) drop(sess *session) {
	s.mu.Lock()
	delete(s.sessions, sess.id)
	s.mu.Unlock()
	sess.cancel(errStopped)
}

// exit ends the process, or else what a client would see of that: its stdio
// connection, or all sessions over HTTP.
func (s *Server) exit(sess *session, why string) {
	s.note(sess, Entry{Event: EventExit, Detail: why})
	if s.opts.Exit != nil {
		s.opts.Exit(exitCode)
	}
	sess.cancel(ErrExited)
	if sess.transport == "stdio" {
		return
	}
	for _, other := range s.allSessions() {
		if other.transport != "stdio" {
			other.cancel(ErrExited)
			s.drop(other)
		}
	}
}

const exitCode = 3
