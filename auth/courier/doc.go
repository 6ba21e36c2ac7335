// Package courier logs in on one machine with the browser of another.
//
// It owns the talk between two ushers over the standard streams of a command such as
// ssh: the far one begins logins, keeps their verifiers and trades the codes; the
// near one, where the person sits, shows the consents and catches what comes back
// from them. Only what a browser sees anyway goes over the line: addresses of consent
// pages one way; state, code and the issuer's name, or an error, the other way. It
// does not own OAuth (auth), nor the order of work (auth/bulk), nor the command and
// what the person is shown (cli).
//
// The flow: the far side says hello, with the loopback addresses at which it would
// like answers to be taken ([Serve]) → the near side listens there and gives its
// order ([Near.Order]) → every step of every login comes as a row, and [Near] stands
// for a bulk driver in front of whoever shows it → answers go back ([Near.Answer],
// [Near.Paste]) → done. When the line breaks, logins that wait go on to wait on the
// far machine, and the next courier takes them up.
//
// Each message is one line behind a mark. Whatever else appears, such as what a
// login shell prints, is not a message and is handed on as noise.
package courier
