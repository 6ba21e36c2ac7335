//go:build !unix

package sqlstore

// dropPrivileges does nothing where there is no root.
func dropPrivileges() error { return nil }
