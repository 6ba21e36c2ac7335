package policy

import "testing"

func TestScope(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		sel                   *Scope
		server, account, tool string
		seen, others          bool
	}{
		{"everything", nil, "a", "", "t", true, true},
		{"server named", (*Scope)(nil).Within("p", Profile{Servers: []string{"a"}}), "a", "", "t", true, true},
		{"server in a class", (*Scope)(nil).Within("p", Profile{Servers: []string{"[ab]"}}), "a", "", "t", true, true},
		{"account of a server named", (*Scope)(nil).Within("p", Profile{Servers: []string{"a"}}), "a", "work", "t", true, true},
		{"only the account", (*Scope)(nil).Within("p", Profile{Servers: []string{"a@work"}}), "a", "", "t", false, false},
		{"server not named", (*Scope)(nil).Within("p", Profile{Servers: []string{"a"}}), "b", "", "t", false, false},
		{"tool named", (*Scope)(nil).Within("p", Profile{Tools: []string{"a/t*"}}), "a", "", "t1", true, false},
		{"other tool of it", (*Scope)(nil).Within("p", Profile{Tools: []string{"a/t*"}}), "a", "", "u", false, false},
		{"tools narrow a server", (*Scope)(nil).Within("p", Profile{Servers: []string{"a", "b"}, Tools: []string{"a/t"}}), "a", "", "u", false, true},
		{"and leave the other alone", (*Scope)(nil).Within("p", Profile{Servers: []string{"a", "b"}, Tools: []string{"a/t"}}), "b", "", "u", true, true},
		{"scope of servers", NewScope([]string{"x*"}, nil), "a", "", "t", false, true},
		{"scope of tools", NewScope(nil, []string{"a/t"}), "a", "", "t", true, false},
		{"scope of tools of any server", NewScope(nil, []string{"read_*"}), "a", "", "read_x", true, false},
		{"scope and profile", NewScope(nil, []string{"t"}).Within("p", Profile{Servers: []string{"b"}}), "a", "", "t", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := tt.sel.server(tt.server, tt.account) && tt.sel.tool(tt.server, tt.account, tt.tool)
			if seen != tt.seen {
				t.Errorf("tool seen: %v", seen)
			}
			if got := tt.sel.Whole(tt.server, tt.account); got != tt.others {
				t.Errorf("others seen: %v", got)
			}
		})
	}
}
