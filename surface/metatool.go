package surface

// metaName is the name of the one tool of the meta view.
const metaName = "mcp"

// metaTool is the one tool that stands for all servers. It is the same bytes
// whatever stands behind it, so that it never costs an agent more and never spoils
// a prompt cache.
const metaTool = `{"name":"mcp","title":"Use any connected MCP server","description":"Gateway to many MCP servers and their tools. Typical order: search, describe_tool, call.\n\nActions:\n- help: usage with examples\n- list_servers: all servers with state\n- search {query, limit?}: find tools by what they do\n- list_tools {server}: names of one server's tools\n- describe_tool {server, tool}: full definition with input schema; read it before the first call\n- call {server, tool, arguments}: run a tool and get its own result\n- status {server?}: health, last error, progress of logins\n- login {server}: returns at once with a link for the person\n- complete_login {server, redirect_url}: finish a login by the address the browser ended on","inputSchema":{"type":"object","properties":{"action":{"type":"string","enum":["help","list_servers","search","list_tools","describe_tool","call","status","login","complete_login"]},"server":{"type":"string","description":"Server name, or name@label for one account; login also takes all"},"tool":{"type":"string","description":"Tool name as listed"},"arguments":{"type":"object","description":"Arguments of the tool","additionalProperties":true},"query":{"type":"string","description":"What the tool should do, in your own words"},"limit":{"type":"integer","minimum":1,"maximum":50,"default":10},"redirect_url":{"type":"string"}},"required":["action"]},"annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}}`

// metaHelp is what the help action answers.
const metaHelp = `Tools of many MCP servers behind one tool. One example per action:

{"action":"help"}
{"action":"list_servers"}
{"action":"search","query":"open a ticket about a bug","limit":5}
{"action":"list_tools","server":"github"}
{"action":"describe_tool","server":"github","tool":"create_issue"}
{"action":"call","server":"github","tool":"create_issue","arguments":{"owner":"o","repo":"r","title":"t"}}
{"action":"status"} or {"action":"status","server":"github"}
{"action":"login","server":"github"} (or "github@work", or "all")
{"action":"complete_login","server":"github","redirect_url":"http://127.0.0.1:…/callback?code=…"}

The usual order is search, describe_tool, call. search, list_tools and describe_tool answer from memory and cost nothing at the server. call returns what the tool returned. When a server needs a login, use login and show the person what it returns; status tells when it is done, then repeat the call.`
