// Package terminal shows commands as a person at a terminal sees them: it runs them
// in tmux, which is a terminal that nobody here wrote, and looks at the screen.
//
// It owns the way to tmux (start, type, paste, resize, look), a small drawing of a
// screen as a picture, and the tests of what usher draws: the board of many logins.
// It refuses to own what the words mean: those are tested beside the code.
//
// The flow: [Open] starts a private tmux with one pane and speaks to it in its
// control mode, in which it tells whenever something was printed → [Screen.Await]
// looks again each time, until what is wanted is there → [SVG] draws what is.
package terminal
