// Package advice says what a person can do about an error: the commands of usher that
// belong to it. Errors of the library carry data and no commands; the command line, the
// console and the control socket add them here.
//
//	fmt.Fprintln(os.Stderr, "usher:", advice.Message(err))
//	if next := advice.Next(err); next != "" {
//		fmt.Fprintln(os.Stderr, " ", next)
//	}
package advice

import (
	"errors"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/host"
	"github.com/usher-mcp/usher/policy"
	"github.com/usher-mcp/usher/policy/pins"
	"github.com/usher-mcp/usher/vault"
)

// LoginCommand is the command with which a person logs in to the account of a key.
func LoginCommand(k host.Key) string { return "usher login " + config.AccountName(k.Server, k.Account) }

// toolTarget is how commands name a tool: server/tool, or server@account/tool.
func toolTarget(server, account, tool string) string {
	name := config.AccountName(server, account)
	if tool != "" {
		name += "/" + tool
	}
	return config.Unquoted(name)
}

// Message is the text of an error for a person, with the next step that belongs on the
// same line.
func Message(err error) string {
	msg := err.Error()
	var failed *host.Error
	var changed *policy.ChangedError
	var again *pins.ChangedAgainError
	next := ""
	switch {
	case errors.As(err, &failed):
		next = NextStep(failed)
	case errors.As(err, &changed) && changed.Reason == "":
		next = "usher pins accept " + toolTarget(changed.Server, changed.Account, changed.Tool)
	case errors.As(err, &again):
		next = "usher pins diff " + toolTarget(again.Server, "", again.Tool)
	}
	if next == "" {
		return msg
	}
	return msg + "; " + next
}

// NextStep is the next step after a failure of a server, with the command for it.
func NextStep(e *host.Error) string {
	switch e.Action {
	case host.ActionReload:
		command := "usher reload " + e.Server
		switch {
		case e.Advice == "":
			return "run: " + command
		case errors.Is(e, host.ErrDisabled):
			return e.Advice + ", then: " + command
		}
		return e.Advice + ", or run: " + command
	case host.ActionApprove:
		return "run: usher approve " + e.Server
	case host.ActionLogs:
		return "see: usher logs " + e.Server
	case host.ActionDiagnose:
		return "see: usher doctor " + e.Server
	}
	return e.Hint()
}

// Next is the next step for a person that stands on a line of its own, with the
// command where there is one. It is empty when the error has none.
func Next(err error) string {
	var h interface{ Hint() string }
	if !errors.As(err, &h) {
		return ""
	}
	switch e := h.(type) {
	case *host.Error:
		return Next(e.Err) // its own is part of Message
	case *pins.ChangedAgainError:
		return ""
	case *policy.ChangedError:
		return "usher pins diff " + toolTarget(e.Server, e.Account, e.Tool)
	case *policy.DeniedError:
		if e.NotAllowed() {
			return "usher allow " + toolTarget(e.Server, e.Account, e.Tool)
		}
	case *policy.UnknownError:
		return adviceUnknown(e)
	case *auth.NeedsLoginError:
		return e.Command
	case *vault.CorruptError:
		if e.Key != (vault.Key{}) {
			return "usher doctor"
		}
		return "usher store repair"
	}
	return h.Hint()
}

func adviceUnknown(e *policy.UnknownError) string {
	name := config.AccountName(e.Server, e.Account)
	switch {
	case e.Unsupported():
		return ""
	case e.Tool != "":
		return "usher tools " + name
	case e.Account != "":
		return "usher login " + name
	}
	return "usher list"
}
