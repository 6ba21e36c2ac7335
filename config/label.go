package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/usher-mcp/usher/internal/visible"
)

// maxLabelLength bounds the label of an account, which becomes part of file names
// and keys.
const maxLabelLength = 64

// SplitAccount splits "server" or "server@label" at the first "@", without a check: for
// names that usher wrote itself and for names that are looked up.
func SplitAccount(text string) (server, label string) {
	server, label, _ = strings.Cut(text, "@")
	return server, label
}

// ParseAccount reads "server" or "server@label" as a person writes it. The label must be
// one that CheckLabel accepts.
func ParseAccount(text string) (server, label string, err error) {
	server, label, labelled := strings.Cut(text, "@")
	if labelled {
		if err := CheckLabel(label); err != nil {
			return "", "", fmt.Errorf("%s is not an account: %w", Visible(text), err)
		}
	}
	return server, label, nil
}

// AccountName is "server", or "server@label" for a named account.
func AccountName(server, label string) string {
	if label == "" {
		return server
	}
	return server + "@" + label
}

// CheckLabel returns an error when a label cannot name an account in
// "server@label". A label may become part of a file name on any system.
func CheckLabel(label string) error {
	switch {
	case label == "":
		return errors.New("the label is empty: write server or server@label")
	case len(label) > maxLabelLength:
		return fmt.Errorf("the label %s is longer than %d bytes", visible.Quote(label[:maxLabelLength])+"…", maxLabelLength)
	case strings.HasPrefix(label, ".") || strings.HasSuffix(label, "."):
		return fmt.Errorf("the label %s must not begin or end with a dot", visible.Quote(label))
	}
	for _, r := range label {
		switch {
		case strings.ContainsRune(`@/\:*?"<>|%`, r):
			return fmt.Errorf("the label %s must not contain %q", visible.Quote(label), r)
		case unicode.IsSpace(r) || !unicode.IsPrint(r) || visible.Invisible(r) || r == unicode.ReplacementChar:
			return fmt.Errorf("the label %s must not contain spaces or invisible characters", visible.Quote(label))
		}
	}
	return nil
}
