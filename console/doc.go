// Package console is what a person sees of usher in a browser.
//
// It owns web pages and how they are guarded: the console (servers, tools, calls,
// pins, accounts, budgets), and the consent page, which lists all logins that wait,
// opens one consent per click and shows them turn green. It does not own what it
// shows: a [World] says how everything is and does what a form asks for, and
// auth/bulk drives logins. It never opens a browser: a person does that with the link
// a surface prints.
//
// The flow of the console: [New] over a world → [Console.Link] → the browser trades
// the link for a cookie → a page is looked at (screen.go), rendered in regions
// (assets/*.html) and followed over a stream that sends a region whenever it reads
// differently (live.go, assets/console.js) → a form, guarded by session, token and
// origin (console.go), becomes an action (actions.go).
//
// The flow of the consent page: [NewConsent] over a driver → [Consent.Start] listens
// on loopback and returns a link that works once → the page follows the driver's
// events, each as the whole truth, so that nothing is lost by a slow browser → it
// closes when every login has ended.
//
// Everything a page shows of others, such as the words of a server, is escaped;
// scripts and styles come from this program only.
package console
