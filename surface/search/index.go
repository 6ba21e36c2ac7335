package search

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	limits "github.com/usher-mcp/usher/internal/limit"
)

// Document is one tool to be found.
type Document struct {
	Server string
	Tool   string // the name it is called by
	// Definition is the tool as its server sent it, raw.
	Definition []byte
}

// Hit is one tool that was found.
type Hit struct {
	Server string
	Tool   string
	// Title is the tool's title, else the first line of its description, cut to
	// one line of a terminal. It is a server's text: callers escape it.
	Title string
	// Score grows with how well the tool fits; scores of two searches do not
	// compare.
	Score float64
}

// Index finds tools by words (Okapi BM25). It never changes, so that any number of
// searches may run at once; a new catalog gets a new one.
type Index struct {
	hits     []Hit            // without scores; a document's number is its place here
	lengths  []float64        // weighted number of words
	mean     float64          // of lengths
	ids      map[string]int32 // number of each word
	postings [][]posting      // by number of the word, in the order of documents
	words    []string         // sorted, for beginnings of words
}

type posting struct {
	doc    int32
	weight float32 // how often, each time with the weight of its place
}

// What a word in each place counts.
const (
	inName        = 4
	inTitle       = 3
	inServer      = 2
	inParameter   = 1.5
	inDescription = 1
	inDetail      = 0.5 // a parameter's description
)

// The usual constants of BM25: how fast repetition stops to count, and how much
// long texts are held back.
const (
	saturation = 1.2
	lengthBias = 0.6
)

// DefaultLimit is how many hits a search returns that does not say.
const DefaultLimit = 10

// NewIndex reads the definitions. What cannot be read is found by its name only.
func NewIndex(docs []Document) *Index {
	x := &Index{ids: map[string]int32{}}
	in := indexer{index: x}
	total := 0.0
	for n, d := range docs {
		in.document(d)
		length := in.store(int32(n))
		total += length
		x.lengths = append(x.lengths, length)
		x.hits = append(x.hits, Hit{Server: d.Server, Tool: d.Tool, Title: TitleOf(d.Definition)})
	}
	x.mean = max(1, total/float64(max(1, len(docs))))
	x.words = slices.Sorted(maps.Keys(x.ids))
	return x
}

// Len is the number of tools in the index.
func (x *Index) Len() int { return len(x.hits) }

// Search returns the tools that fit the query best, at most limit of them (
// [DefaultLimit] when limit is not positive). Equal tools come in the order of
// server and name, so that the same question has the same answer.
func (x *Index) Search(query string, limit int) []Hit {
	if limit <= 0 {
		limit = DefaultLimit
	}
	asked := map[string]bool{}
	eachWord(query, func(w []byte) {
		if len(asked) < limits.QueryWords {
			asked[string(stem(w))] = true
		}
	})
	scores := make([]float64, len(x.hits))
	var touched []int32
	for _, w := range slices.Sorted(maps.Keys(asked)) {
		for _, m := range x.matches(w) {
			x.score(m.word, m.weight, scores, &touched)
		}
	}
	out := []Hit{}
	for _, doc := range x.best(touched, scores, limit) {
		hit := x.hits[doc]
		hit.Score = scores[doc]
		out = append(out, hit)
	}
	return out
}

// best returns the limit documents of the highest scores, in order.
func (x *Index) best(touched []int32, scores []float64, limit int) []int32 {
	order := func(a, b int32) int {
		p, q := &x.hits[a], &x.hits[b]
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(p.Server, q.Server), cmp.Compare(p.Tool, q.Tool), cmp.Compare(a, b))
	}
	var top []int32
	for _, doc := range touched {
		if len(top) == limit {
			if scores[doc] < scores[top[limit-1]] || order(doc, top[limit-1]) > 0 {
				continue
			}
			top = top[:limit-1]
		}
		at, _ := slices.BinarySearchFunc(top, doc, order)
		top = slices.Insert(top, at, doc)
	}
	return top
}

type wordMatch struct {
	word   int32
	weight float64
}

// maxCompletions bounds how many words the beginning of a word stands for.
const maxCompletions = 20

// matches returns the word itself where it occurs, else words that begin with it.
func (x *Index) matches(word string) []wordMatch {
	if id, ok := x.ids[word]; ok {
		return []wordMatch{{id, 1}}
	}
	var out []wordMatch
	if len(word) < 3 {
		return nil
	}
	at, _ := slices.BinarySearch(x.words, word)
	for _, w := range x.words[at:] {
		if !strings.HasPrefix(w, word) || len(out) == maxCompletions {
			break
		}
		out = append(out, wordMatch{x.ids[w], 0.5})
	}
	return out
}

// score adds what one word is worth to every document that has it.
func (x *Index) score(word int32, weight float64, scores []float64, touched *[]int32) {
	list := x.postings[word]
	n, with := float64(len(x.hits)), float64(len(list))
	rarity := weight * math.Log(1+(n-with+0.5)/(with+0.5))
	for _, p := range list {
		tf := float64(p.weight)
		norm := saturation * (1 - lengthBias + lengthBias*x.lengths[p.doc]/x.mean)
		if scores[p.doc] == 0 {
			*touched = append(*touched, p.doc)
		}
		scores[p.doc] += rarity * tf * (saturation + 1) / (tf + norm)
	}
}

// indexer collects the words of one document after the other.
type indexer struct {
	index   *Index
	weights []float32 // of each word in this document
	here    []int32   // the words of this document
}

func (in *indexer) add(text string, weight float32) {
	eachWord(text, func(w []byte) {
		w = stem(w)
		id, ok := in.index.ids[string(w)]
		if !ok {
			id = int32(len(in.weights))
			in.index.ids[string(w)] = id
			in.weights = append(in.weights, 0)
			in.index.postings = append(in.index.postings, nil)
		}
		if in.weights[id] == 0 {
			in.here = append(in.here, id)
		}
		in.weights[id] += weight
	})
}

// store writes down the words of the document and returns its weighted length.
func (in *indexer) store(doc int32) float64 {
	length := 0.0
	for _, id := range in.here {
		in.index.postings[id] = append(in.index.postings[id], posting{doc, in.weights[id]})
		length += float64(in.weights[id])
		in.weights[id] = 0
	}
	in.here = in.here[:0]
	return length
}

func (in *indexer) document(d Document) {
	in.add(d.Server, inServer)
	in.add(d.Tool, inName)
	if own := jsonx.GetText(d.Definition, "name"); own != d.Tool {
		in.add(own, inName)
	}
	in.add(jsonx.GetText(d.Definition, "title"), inTitle)
	in.add(jsonx.GetText(d.Definition, "description"), inDescription)
	schema, _ := jsonx.Get(d.Definition, "inputSchema")
	in.parameters(schema, 0)
}

// maxNesting is how deep parameters are looked for.
const maxNesting = 4

func (in *indexer) parameters(schema []byte, depth int) {
	if depth > maxNesting {
		return
	}
	properties, _ := jsonx.Get(schema, "properties")
	for m := jsonx.Object(properties); m.Next(); {
		in.add(string(m.Key), inParameter)
		in.add(jsonx.GetText(m.Value, "description"), inDetail)
		in.parameters(m.Value, depth+1)
		if items, ok := jsonx.Get(m.Value, "items"); ok {
			in.parameters(items, depth+1)
		}
	}
}

// maxTitle is how much of a title is kept, in characters.
const maxTitle = 100

// TitleOf is the title of a tool, else the first line of its description, in one line.
func TitleOf(tool []byte) string {
	text := jsonx.GetText(tool, "title")
	if strings.TrimSpace(text) == "" {
		text = jsonx.GetText(tool, "description")
	}
	return CutLine(text)
}

// cutLine is the first line of a text, at most maxTitle characters of it.
func CutLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxTitle {
		text = strings.TrimRight(string(runes[:maxTitle-1]), " ") + "…"
	}
	return text
}
