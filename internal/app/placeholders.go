package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/process"
	"github.com/usher-mcp/usher/vault"
)

// commandTimeout bounds a ${cmd:…} placeholder.
const commandTimeout = 30 * time.Second

// placeholders are the values that definitions leave to the user: secrets, inputs and
// the output of commands.
type placeholders struct {
	store     vault.Store
	principal string
	config    func() *config.Config
	approvals *approvals
}

// lookup completes the sources of placeholders.
func (p *placeholders) lookup(o *Options) config.Lookup {
	l := o.Lookup
	if l.Env == nil {
		l.Env = o.Load.System.LookupEnv
		if l.Env == nil {
			l.Env = os.LookupEnv
		}
	}
	if l.Secret == nil {
		l.Secret = p.secret
	}
	if l.Input == nil {
		l.Input = p.input(o.Prompt.Input)
	}
	if l.Command == nil {
		l.Command = p.runCommand
	}
	return l
}

// runCommand runs the command line of a ${cmd:…} placeholder, once the definition
// that holds it has been approved or stands in a trusted file.
func (p *placeholders) runCommand(ctx context.Context, srv config.Server, command string) (string, error) {
	if err := p.approvals.check(ctx, srv); err != nil {
		return "", err
	}
	ctx, stop := context.WithTimeout(ctx, commandTimeout)
	defer stop()
	shell := []string{"/bin/sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/c"}
	}
	cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], command)...)
	cmd.Env = process.SafeEnv(os.Environ(), nil)
	cmd.Dir = srv.BaseDir()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("the command ended with code %d", exit.ExitCode())
	}
	return strings.TrimRight(string(out), "\r\n"), err
}

func (p *placeholders) secrets() *vault.Secrets { return vault.NewSecrets(p.store, p.principal) }

// secret is the value of a ${secret:NAME} placeholder.
func (p *placeholders) secret(ctx context.Context, name string) (string, bool, error) {
	value, err := p.secrets().Get(ctx, name)
	if errors.Is(err, vault.ErrNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return value.Reveal(), true, nil
}

// input is the value of an ${input:ID} placeholder: what was answered once, or
// the answer to a question put now, one at a time.
func (p *placeholders) input(ask func(context.Context, config.Input) (vault.Secret, error)) func(context.Context, string) (string, bool, error) {
	turn := make(chan struct{}, 1)
	return func(ctx context.Context, id string) (string, bool, error) {
		value, ok, err := p.secret(ctx, id)
		if ok || err != nil || ask == nil {
			return value, ok, err
		}
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return "", false, ctx.Err()
		}
		if value, ok, err = p.secret(ctx, id); ok || err != nil {
			return value, ok, err // answered while this one waited
		}
		in, known := p.config().Input(id)
		if !known {
			in = config.Input{ID: id, Password: true}
		}
		answer, err := ask(ctx, in)
		if err != nil || answer.IsZero() {
			return "", false, err
		}
		if err := p.secrets().Set(ctx, id, answer); err != nil {
			return "", false, err
		}
		return answer.Reveal(), true, nil
	}
}
