// Package login holds the commands login, logout and auth, with the board that shows
// many logins at once, pasted answers and callback forwarding.
package login
