// Package forward logs in on one machine with the browser of another (callback
// forwarding, `usher login --courier ssh HOST`).
//
// Two usher processes talk over the standard streams of a command such as ssh. On the remote
// machine [Remote.Serve] begins logins, keeps their PKCE verifiers and exchanges the
// codes. On the machine where the user and the browser are, [Local] shows the consent
// pages and sends the callbacks back:
//
//  1. The remote side sends a hello with the loopback addresses at which it would like
//     callbacks to be received ([Local.Hello]).
//  2. The local side listens there and says what to log in ([Local.Order]).
//  3. The remote side sends each step of each login as a row ([Local.Run]); [Local] then
//     offers what a [bulk.Driver] offers to the board and the consent page.
//  4. Callbacks and pasted addresses go back ([Local.Answer], [Local.Paste]), until the
//     remote side says that it is done.
//
// Guarantees: only what a browser sees anyway is sent: addresses of consent pages one
// way; state, code and issuer, or an error, the other way. Tokens and verifiers never
// leave the remote machine. Messages, accounts, states and waiting browsers are limited
// (internal/limit). When the connection breaks, pending logins stay in the remote store,
// and the next forwarding resumes them.
//
// Each message is one line behind a marker. Any other line, such as the greeting of a
// login shell, is not a message and is passed on as noise.
//
// The package does not own OAuth (auth), the order of work (auth/bulk), or the command
// and its output (cli).
package forward
