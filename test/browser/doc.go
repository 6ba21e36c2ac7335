// Package browser looks at usher's pages in a real Chromium.
//
// It owns the way to it (a Node script on playwright-core per scene, and drive.mjs,
// which they share) and the tests. It refuses to own what the pages are made of: that
// is tested in console, without a browser.
//
// The flow: a test starts usher as a person would, and servers for it → [play] runs a
// scene in Node with the address of the page → the scene clicks, waits for what must
// appear, and fails by ending with another code than 0 → drive.mjs fails it as well
// when a page wrote an error to its console, asked anything beyond this machine, or
// has a serious finding of axe-core.
//
// With USHER_SCREENSHOTS=1 the pictures of docs/img are written again; without, they
// are taken and thrown away.
package browser
