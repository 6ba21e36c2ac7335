package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/mcp"
)

// errDiedOnProbe marks a child that ended while it was asked for its era.
var errDiedOnProbe = errors.New("the server exited when it was asked which protocol it speaks")

// negotiate finds the era: `server/discover` first, `initialize` when the answer
// is anything but a modern one, both side by side when there is no answer within
// the budget. So a slow start costs nothing and a silent server is not waited for.
func (c *Conn) negotiate(ctx context.Context) error {
	if v := c.opt.Version; v != "" && !mcp.Stateless(v) {
		result, err := c.handshake(ctx)
		if err == nil {
			return c.initialized(ctx, result)
		}
		if !modernRefusal(err) {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	probe, probes := c.probe(ctx, mcp.Latest), 1
	timer := time.NewTimer(c.opt.ProbeTimeout)
	defer timer.Stop()
	var handshake chan probeAnswer
	legacy := func() {
		if handshake == nil {
			handshake = c.ask("", func() ([]byte, error) { return c.handshake(ctx) })
		}
	}
	for {
		select {
		case a := <-probe:
			if err := c.checkInfo(a.result); err != nil {
				return err
			}
			v, verdict := c.judge(ctx, a)
			switch verdict {
			case isModern:
				return nil
			case tryVersion:
				if probes++; probes > maxProbes {
					return c.diedOnProbe(a.err)
				}
				probe = c.probe(ctx, v)
			case isLegacy:
				probe = nil
				legacy()
			case isFinal:
				return c.diedOnProbe(a.err)
			}
		case <-timer.C:
			legacy()
		case a := <-handshake:
			if probe != nil && modernRefusal(a.err) {
				handshake = nil // only the probe's answer can help
				continue
			}
			if a.err != nil {
				return c.diedOnProbe(a.err)
			}
			return c.initialized(ctx, a.result)
		}
	}
}

// diedOnProbe marks the death of a child that read the probe and may have exited
// because of it, so that a fresh one can be spared the probe. One that exits by itself,
// or that is known to speak the modern era, would only exit once more.
func (c *Conn) diedOnProbe(err error) error {
	l, stdio := c.link.(*stdioLink)
	if stdio && errors.Is(err, ErrTransport) && MaybeSent(err) && !l.child.Ignored() && c.opt.Version == "" {
		return fmt.Errorf("%w: %w", errDiedOnProbe, err)
	}
	return err
}

// modernRefusal reports whether a server refused `initialize` because it only
// speaks the modern era.
func modernRefusal(err error) bool {
	var we *mcp.Error
	return errors.As(err, &we) && (mcp.StatelessCode(we.Code) || we.Code == mcp.CodeMethodNotFound)
}

// probeAnswer is what came back from one of the two questions.
type probeAnswer struct {
	version string // the revision that was offered
	result  []byte
	err     error
}

func (c *Conn) probe(ctx context.Context, version string) chan probeAnswer {
	return c.ask(version, func() ([]byte, error) {
		return c.do(ctx, mcp.Request{Method: mcp.MethodDiscover}, version)
	})
}

func (c *Conn) ask(version string, question func() ([]byte, error)) chan probeAnswer {
	ch := make(chan probeAnswer, 1)
	c.wg.Go(func() {
		result, err := question()
		ch <- probeAnswer{version, result, err}
	})
	return ch
}

// maxProbes bounds how often a server may ask for another version.
const maxProbes = 3

type verdict int

const (
	isModern   verdict = iota // c is set up
	tryVersion                // ask again with the returned version
	isLegacy                  // go on with initialize
	isFinal                   // the answer's error ends the dialling
)

// judge decides what an answer to the probe means. The fallback is keyed to no
// error code: whatever only a modern server can say is modern, what says nothing
// about the era (no login, no network) is final, everything else is older.
func (c *Conn) judge(ctx context.Context, a probeAnswer) (string, verdict) {
	if a.err == nil {
		versions := supportedVersions(a.result)
		v, modern := bestModern(versions)
		if !modern {
			return "", isLegacy
		}
		c.adopt(v, a.result)
		return v, isModern
	}
	var we *mcp.Error
	switch {
	case errors.As(a.err, &we) && we.Code == mcp.CodeUnsupportedVersion:
		// Even the version just refused is tried again when the server names it.
		if v, modern := bestModern(mcp.UnsupportedVersions(we)); modern {
			return v, tryVersion
		}
		return "", isLegacy
	case errors.As(a.err, &we):
		return "", isLegacy
	case ctx.Err() != nil, errors.Is(a.err, ErrUnauthorized), errors.Is(a.err, ErrRateLimited), errors.Is(a.err, ErrClosed):
		return "", isFinal
	case errors.Is(a.err, ErrTransport), errors.Is(a.err, errRedirect):
		return "", isFinal
	}
	return "", isLegacy
}

func supportedVersions(result []byte) []string {
	var r struct {
		SupportedVersions []string `json:"supportedVersions"`
	}
	if json.Unmarshal(result, &r) != nil {
		return nil
	}
	return r.SupportedVersions
}

// bestModern picks the newest revision of the modern era that both sides know.
func bestModern(offered []string) (string, bool) {
	for _, v := range mcp.Versions() {
		for _, o := range offered {
			if o == v && mcp.Stateless(v) {
				return v, true
			}
		}
	}
	return "", false
}

// adopt takes over what the server said in answer to the probe.
func (c *Conn) adopt(version string, result []byte) {
	c.version = version
	c.info = ServerInfo{Version: version, Raw: result, Instructions: jsonx.GetText(result, "instructions")}
	c.info.Capabilities, _ = jsonx.Get(result, "capabilities")
	c.info.Info, _ = jsonx.Path(result, "_meta", mcp.MetaServerInfo)
}

// checkInfo refuses a server that says too much about itself: it is kept as long as the
// connection lives, and its instructions longer.
func (c *Conn) checkInfo(result []byte) error {
	if len(result) <= limit.ServerInfoBytes {
		return nil
	}
	return &ProtocolError{Server: c.server.Name, Msg: "what it says about itself is too long", Err: ErrLimit}
}

// reinitialize performs the handshake again on a connection in use: the server
// has lost our session. What it says about itself this time is not taken over.
func (c *Conn) reinitialize(ctx context.Context) error {
	if _, err := c.handshake(ctx); err != nil {
		return err
	}
	if err := c.link.send(ctx, mcp.AppendNotification(nil, mcp.MethodNotifyInit, nil)); err != nil {
		return err
	}
	c.greet(ctx)
	return nil
}

// greet tells a new session what the one before it knew.
func (c *Conn) greet(ctx context.Context) {
	if c.opt.Greet == nil {
		return
	}
	for _, m := range c.opt.Greet() {
		x, err := c.exchange(mcp.Request{Method: m.Method, Params: m.Params}, c.version)
		if err != nil {
			continue
		}
		x.renewed = true
		_, _ = c.perform(ctx, x) // a server that knows no levels is as good as one that does
	}
}

// handshake sends initialize and returns the raw result.
func (c *Conn) handshake(ctx context.Context) ([]byte, error) {
	params := fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":%s,"clientInfo":%s}`, mcp.LatestLegacy, c.opt.Capabilities, c.opt.clientInfo())
	return c.do(ctx, mcp.Request{Method: mcp.MethodInitialize, Params: params}, "")
}

// initialized takes over the answer to the handshake and completes it.
func (c *Conn) initialized(ctx context.Context, result []byte) error {
	if err := c.checkInfo(result); err != nil {
		return err
	}
	version := jsonx.GetText(result, "protocolVersion")
	if !mcp.Known(version) || mcp.Stateless(version) {
		return &ProtocolError{Server: c.server.Name, Msg: fmt.Sprintf("it wants protocol version %q; usher speaks %s", version, strings.Join(mcp.Versions(), ", "))}
	}
	c.version = version
	c.info = ServerInfo{Version: version, Raw: result, Instructions: jsonx.GetText(result, "instructions")}
	c.info.Capabilities, _ = jsonx.Get(result, "capabilities")
	c.info.Info, _ = jsonx.Get(result, "serverInfo")
	if err := c.link.send(ctx, mcp.AppendNotification(nil, mcp.MethodNotifyInit, nil)); err != nil {
		return err
	}
	if l, ok := c.link.(*httpLink); ok && (c.opt.OnNotification != nil || c.opt.OnRequest != nil) {
		l.openStream(ctx)
	}
	c.greet(ctx)
	return nil
}
