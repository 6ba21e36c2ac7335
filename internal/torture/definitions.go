package torture

// definitionPoisons are bad servers whose definitions are expensive to read.
var definitionPoisons = []poison{
	{"quadratic-definition=10000", true},
	{"deep-definition", true},
	{"huge-definition", true},
	{"long-names=3000", true},
	{"template-bomb", true},
}
