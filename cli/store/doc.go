// Package store holds the commands for what usher stores: secret, key, token and store.
package store
