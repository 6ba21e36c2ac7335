package limit

import "time"

// Limits on one tool, prompt or resource definition.
const (
	DefinitionSize   = 1 << 20
	DefinitionDepth  = 512
	DefinitionValues = 50_000
	NameSize         = 1 << 10
	URISize          = 16 << 10
)

// Limits on what many definitions can cost together.
const (
	PinnedTools     = 50_000
	NotesPerList    = 100
	Templates       = 1_000
	SuggestionSteps = 2 << 20
	QueryWords      = 32
	HeaderPathDepth = 8
	RelistBurst     = 5
	RelistInterval  = 2 * time.Second
)

// Limits on a server card, which is read before the server is connected to.
const (
	CardBytes   = 1 << 20
	CardTime    = 10 * time.Second
	CardTools   = 1_000
	CardRemotes = 16
)

// MethodSize limits the name of a method.
const MethodSize = 128

func definitionRows() []Row {
	const leftOut = "the definition is left out of the list; the others stay usable"
	return []Row{
		{"DefinitionSize", "server", "size of one definition", DefinitionSize, "bytes", leftOut, "upstream.TestExcessiveDefinitionsAreLeftOut"},
		{"DefinitionDepth", "server", "nesting depth of one definition", DefinitionDepth, "", leftOut, "upstream.TestExcessiveDefinitionsAreLeftOut"},
		{"DefinitionValues", "server", "members and elements of one definition", DefinitionValues, "", leftOut, "upstream.TestExcessiveDefinitionsAreLeftOut"},
		{"NameSize", "server", "name of a tool or prompt", NameSize, "bytes", leftOut, "upstream.TestExcessiveDefinitionsAreLeftOut"},
		{"URISize", "server", "URI of a resource or template", URISize, "bytes", leftOut, "upstream.TestLongAddressesAreLeftOut"},
		{"CardBytes", "server", "size of a server card", CardBytes, "bytes", "the card is not used", "internal/app.TestCardIsBounded"},
		{"CardTime", "server", "time to fetch a server card", CardTime, "", "the card is not used", "internal/app.TestCardIsBounded"},
		{"CardTools", "server", "tools that a server card announces", CardTools, "", "further ones are counted and left out", "config.TestCardLists"},
		{"CardRemotes", "server", "addresses that a server card names", CardRemotes, "", "further ones are left out", "config.TestCardLists"},
		{"PinnedTools", "server", "tools pinned for one server", PinnedTools, "", "further tools are blocked: they have no pin", "policy/pins.TestPinsOfOneServerAreLimited"},
		{"NotesPerList", "server", "log lines and events about one list", NotesPerList, "", "the rest is one line with their count", "policy.TestNotesOfOneListAreLimited"},
		{"Templates", "server", "resource templates of one server that addresses are compared with", Templates, "", "further templates are listed and not compared with", "surface.TestTemplatesAreLimited"},
		{"SuggestionSteps", "server", "steps to find names that may have been meant", SuggestionSteps, "", "names that come later are not suggested", "internal/suggest.TestSuggestionsAreLimited"},
		{"QueryWords", "client", "words of one search", QueryWords, "", "further words are not looked up", "surface/search.TestQueriesAreLimited"},
		{"RelistBurst", "server", "readings of a list that its notifications cause at once", RelistBurst, "", "further ones wait for their turn, and many notifications cause one", "surface.TestChangesAreReadAtALimitedRate"},
		{"RelistInterval", "server", "time between further readings", RelistInterval, "", "notifications until then cause one reading", "surface.TestTurns"},
		{"HeaderPathDepth", "server", "depth of an argument that is mirrored in a header", HeaderPathDepth, "", "the tool is left out of the list", "internal/wire.TestHeaderPathsAreLimited"},
		{"MethodSize", "client", "name of a method", MethodSize, "bytes", "the request is refused: method not found", "mcp.TestCheckMethod"},
	}
}
