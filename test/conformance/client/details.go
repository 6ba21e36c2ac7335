package main

import (
	"encoding/json"

	"github.com/usher-mcp/usher/config"
)

// details are the parts of MCP_CONFORMANCE_CONTEXT that scenarios use.
type details struct {
	ToolCalls []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`

	ClientID         string `json:"client_id"`
	ClientSecret     string `json:"client_secret"`
	Issuer           string `json:"issuer"`
	PrivateKey       string `json:"private_key_pem"`
	IDPClientID      string `json:"idp_client_id"`
	IDPIDToken       string `json:"idp_id_token"`
	IDPIssuer        string `json:"idp_issuer"`
	IDPTokenEndpoint string `json:"idp_token_endpoint"`
	JWT              string `json:"valid_jwt"`
}

// oauth is what a person would have configured for the scenario.
func (d details) oauth(scenario string) *config.OAuth {
	o := &config.OAuth{
		ClientID: d.ClientID, ClientSecret: d.ClientSecret, Issuer: d.Issuer, PrivateKey: d.PrivateKey,
		ClientMetadataURL: "https://conformance-test.local/client-metadata.json",
	}
	switch scenario {
	case "auth/client-credentials-basic", "auth/client-credentials-jwt":
		o.Grant = config.GrantClientCredentials
	case "auth/wif-jwt-bearer":
		o.Grant, o.Assertion = config.GrantJWTBearer, d.JWT
	case "auth/enterprise-managed-authorization":
		o.Grant = config.GrantEnterprise
		o.IDP = &config.IDP{Issuer: d.IDPIssuer, TokenEndpoint: d.IDPTokenEndpoint, ClientID: d.IDPClientID, IDToken: d.IDPIDToken}
	case "auth/dpop", "auth/dpop-nonce":
		o.DPoP = true
	}
	return o
}

// oauthEntry is the same in the words of mcp.json.
func (d details) oauthEntry(scenario string) map[string]any {
	o := d.oauth(scenario)
	entry := map[string]any{}
	for name, value := range map[string]string{
		"clientId": o.ClientID, "clientSecret": o.ClientSecret, "issuer": o.Issuer, "privateKey": o.PrivateKey,
		"clientMetadataUrl": o.ClientMetadataURL, "grant": o.Grant, "assertion": o.Assertion,
	} {
		if value != "" {
			entry[name] = value
		}
	}
	if o.DPoP {
		entry["dpop"] = true
	}
	if o.IDP != nil {
		entry["idp"] = map[string]string{
			"issuer": o.IDP.Issuer, "tokenEndpoint": o.IDP.TokenEndpoint, "clientId": o.IDP.ClientID, "idToken": o.IDP.IDToken,
		}
	}
	return entry
}
