package cli

// effect says what a command does to the guards between agents and servers: rules,
// pins, approvals, tokens, secrets, keys and the list of servers.
type effect int

const (
	neutral  effect = iota // it shows something, or passes the guards like every call
	tightens               // it takes something away from agents
	loosens                // it gives agents something, and needs a person
)

// commandEffect is one row of the table. The flags are those of the command.
type commandEffect struct {
	effect effect
	// with are flags that make a command loosen something.
	with []string
	// except are flags with which a command only shows or tightens. They win.
	except []string
	// asks: without --yes the command asks on a terminal, and without a terminal it
	// shows what it would do and ends.
	asks bool
}

// commandEffects has a row for every command. A test fails when one is missing.
func commandEffects() map[string]commandEffect {
	return map[string]commandEffect{
		"":           {},
		"help":       {},
		"version":    {},
		"completion": {},

		// A login is agreed to at the provider, by a person.
		"login": {}, "logout": {effect: tightens},
		"auth": {}, "auth list": {}, "auth show": {}, "auth explain": {}, "auth clients": {}, "auth prune": {effect: tightens},

		// What reaches servers passes the gate.
		"tools": {}, "card": {}, "describe": {}, "call": {}, "search": {}, "discover": {}, "serve": {}, "hold": {},
		"demo": {}, "fake": {}, "torture": {},
		"surface": {}, "surface explain": {},

		"status": {}, "doctor": {}, "logs": {}, "reload": {}, "stop": {effect: tightens},
		"audit": {}, "audit tail": {}, "audit verify": {}, "audit export": {},
		// A link to the console lets its holder accept pins there.
		"console": {effect: loosens},

		"pins": {}, "pins diff": {}, "pins verify": {},
		"pins accept": {effect: loosens},
		"pins lock":   {effect: loosens}, // others start from what it says

		"allow": {effect: loosens, except: []string{"list", "dry-run"}},
		"deny":  {effect: tightens, with: []string{"remove"}, except: []string{"list", "dry-run"}},

		"list":   {},
		"remove": {effect: tightens},
		// What stands in a project's file is held back until a person approves it.
		"add":     {effect: loosens, except: []string{"dry-run", "project"}},
		"import":  {effect: loosens, except: []string{"dry-run", "project"}, asks: true},
		"approve": {effect: loosens, except: []string{"list", "revoke", "json"}, asks: true},
		"init":    {effect: loosens, except: []string{"dry-run"}, asks: true},
		"export":  {with: []string{"secrets"}},
		// A linked client reaches all servers; an unlinked one reaches its own past the gate.
		"link":   {effect: loosens, except: []string{"dry-run"}, asks: true},
		"unlink": {effect: loosens, except: []string{"dry-run"}, asks: true},

		"token": {}, "token list": {}, "token revoke": {effect: tightens},
		"token mint":   {effect: loosens},
		"token script": {effect: loosens, except: []string{"remove"}},

		"secret": {}, "secret list": {}, "secret rm": {effect: tightens},
		"secret set": {effect: loosens},

		"key": {}, "key show": {},
		"key rotate": {effect: loosens},

		"store":         {},
		"store repair":  {effect: loosens}, // pins and approvals that cannot be read are dropped
		"store migrate": {effect: loosens}, // those of another store are taken over
	}
}
