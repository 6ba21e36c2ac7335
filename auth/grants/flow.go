package grants

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/usher-mcp/usher/auth/oauth"
	"github.com/usher-mcp/usher/config"
)

// Flow is a way to log in.
type Flow string

// The flows. The first is used with a browser on this machine, by paste-back and
// by a hosted callback: they differ only in how the answer comes back.
const (
	FlowCode              Flow = "authorization_code"
	FlowDevice            Flow = "device_code"
	FlowClientCredentials Flow = "client_credentials"
	FlowJWTBearer         Flow = "jwt_bearer"
	FlowEnterprise        Flow = "enterprise"
)

// MachineFlow is the configured flow if it needs no person, else "".
func MachineFlow(srv config.Server) Flow {
	switch g := oauth.SettingsOf(srv).Grant; g {
	case config.GrantClientCredentials:
		return FlowClientCredentials
	case config.GrantJWTBearer:
		return FlowJWTBearer
	case config.GrantEnterprise:
		return FlowEnterprise
	}
	return ""
}

// assertionPrint tells assertions apart without keeping them: one that was refused
// is not sent again.
func assertionPrint(srv config.Server) string {
	o := oauth.SettingsOf(srv)
	text := o.Assertion
	if o.IDP != nil {
		text += "\n" + o.IDP.IDToken
	}
	if strings.TrimSpace(text) == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
