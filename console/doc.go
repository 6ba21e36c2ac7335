// Package console is what a person sees of usher in a browser.
//
// It owns web pages and how they are guarded: the consent page, which lists all
// logins that wait, opens one consent per click and shows them turn green. It does
// not own logins (auth/bulk drives them, and says where they stand), and it never
// opens a browser: a person does that with the link a surface prints.
//
// The flow: [NewConsent] over a driver → [Consent.Start] listens on loopback and
// returns a link that works once → the browser trades it for a cookie → the page
// follows the driver's events over a stream, each as the whole truth, so that
// nothing is lost by a slow browser → the page closes when every login has ended.
//
// Everything a page shows of others, such as the words of a provider, is escaped;
// scripts and styles come from this program only.
package console
