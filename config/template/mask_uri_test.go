package template

import (
	"strings"
	"testing"
)

func TestMaskURI(t *testing.T) {
	const token = "ghp_x7Kd93hGq2LmZpR8tVwY4nBc6sJf1aQe0uTi"
	for uri, want := range map[string]string{
		"":                                                         "",
		"file:///home/ann/notes.txt":                               "file:///home/ann/notes.txt",
		"https://example.com/a/b?x=1&y=2":                          "https://example.com/a/b?x=****&y=****",
		"https://ann:hunter2@example.com/a":                        "https://****@example.com/a",
		"https://ann@example.com/a":                                "https://****@example.com/a",
		"postgres://u:p@w@db:5432/x?sslmode=off":                   "postgres://****@db:5432/x?sslmode=****",
		"https://example.com/#access_token=hunter2":                "https://example.com/#****",
		"https://example.com/?hunter2":                             "https://example.com/?****",
		"https://example.com/" + token + "/x":                      "https://example.com/****/x",
		"https://example.com/token/hunter2":                        "https://example.com/token/****",
		"https://" + token + "/x":                                  "https://****/x",
		"usher://crm/https://ann:hunter2@example.com/a?k=hunter2":  "usher://crm/https://****@example.com/a?k=****",
		"usher://crm/note/7":                                       "usher://crm/note/7",
		"https://example.com/https%3A%2F%2Fa:hunter2%40b":          "https://example.com/****",
		"https://example.com/x;token=hunter2/y":                    "https://example.com/****/y",
		"mailto:ann?body=hunter2":                                  "mailto:ann?body=****",
		"urn:token:" + token:                                       "urn:****",
		"https://example.com/" + strings.Repeat("a", maxMaskedURI): Mask,
		"a://" + strings.Repeat("b/c://", 9) + "u:hunter2@d":       "a://b/c://b/c://b/c://b/c://****",
		"notes/today":                                              "notes/today",
		"?k=hunter2":                                               "?k=****",
		"https://example.com?k=hunter2#":                           "https://example.com?k=****#",
	} {
		got := MaskURI(uri)
		if got != want {
			t.Errorf("MaskURI(%q) = %q, want %q", uri, got, want)
		}
		if again := MaskURI(got); again != got {
			t.Errorf("MaskURI(%q) = %q, want it unchanged", got, again)
		}
		if strings.Contains(got, "hunter2") || strings.Contains(got, token) {
			t.Errorf("MaskURI(%q) = %q shows the credential", uri, got)
		}
	}
}

// FuzzMaskURI: a password in the authority and values of the query never come out.
func FuzzMaskURI(f *testing.F) {
	f.Add("https", "example.com", "/a", "k")
	f.Add("usher", "crm", "/https://x", "a&b")
	f.Fuzz(func(t *testing.T, scheme, host, path, key string) {
		const canary = "kLm9Qz"
		if strings.ContainsAny(scheme, ":/?#@"+canary) || strings.ContainsAny(host, "/?#@") || strings.Contains(host+path+key, canary) || strings.ContainsAny(path, "?#") {
			return
		}
		for _, uri := range []string{scheme + "://u:" + canary + "@" + host + path, scheme + "://" + host + path + "?" + key + "=" + canary} {
			if got := MaskURI(uri); strings.Contains(got, canary) {
				t.Errorf("MaskURI(%q) = %q", uri, got)
			}
		}
	})
}
