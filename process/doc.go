// Package process owns child processes: a child with its own process group, a
// bounded record of what it wrote to standard error, a ladder that ends it, and
// the promise that nothing of it stays behind.
//
// It refuses to own what travels over the pipes (package upstream does), when a
// child is restarted (package host does) and where its variables come from
// (package config does). It never runs a shell.
//
// The flow on Linux:
//
//	Start ── looks the command up on the child's own PATH, opens three pipes
//	  └─ shim: the program named by Options.Shim, executed again; Main takes over
//	       └─ child: own process group, inherits the very pipe ends (no copying)
//	            └─ grandchildren, daemons: orphans come back to the shim, which
//	               is a "child subreaper"
//
// The shim and the host are joined by one socket. A stop request, or the end of
// the socket because the host died in whatever way, makes the shim walk the
// ladder: standard input is closed, SIGTERM goes to the group after
// Options.Grace, SIGKILL to everything that descends from the child Options.Kill
// later. A child that ends by itself takes the rest of its tree with it: they
// get SIGTERM at once and SIGKILL after Options.Kill. Then the shim reports how
// the child ended and exits, and Done is closed.
//
// A server can kill its shim, as it runs as the same user. A program that has called
// Adopt is a subreaper itself: what the shim guarded becomes a child of the program,
// which kills all of it. Signals other than SIGKILL stop the child, from the moment it
// exists.
//
// To start the shim takes longer than to start most children: it is the whole program
// again. A program that knows that it will want a child starts one ahead, see Spare.
//
// The shim exists because the parent-death signal of Linux follows the thread
// that started the child, not the process, and because it reaches neither
// grandchildren nor daemons.
//
// Without a shim (embedding programs that do not call Main, and every other
// operating system) the same ladder runs inside the host. The tree is then found
// by parent links, process group and, on Linux, by a variable (USHER_CHILD) in
// the environment of the child. A host killed with SIGKILL leaves the
// grandchildren to the next start: see Options.Registry and Reap. On Windows a
// Job Object holds the tree and the system ends it with the host.
//
// Limits: if a server kills its shim and the program is killed before it has cleaned
// up, or is killed as well, the rest of that server's tree stays: only a control group
// or a container would end it. The same holds for a shim that a server stops with
// SIGSTOP, if the program is killed then. A descendant that both clears its environment and detaches escapes
// where there is no shim; on Windows there is no SIGTERM, so a child that
// ignores the end of its input is terminated after Grace + Kill, and a
// grandchild started in the instant before the child joins its Job Object is
// not in it, and .bat and .cmd files are read by the system's own command
// interpreter. What a child starts for the user, such as a browser, belongs to its
// tree and ends with it.
package process
