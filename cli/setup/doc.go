// Package setup holds the commands that connect usher with other MCP clients: init,
// import, export, link and unlink.
package setup
