package jsonx

// Edit is one change to a member of an object: a new raw value, or removal where
// Value is nil.
type Edit struct {
	Key   string
	Value []byte
}

// Set returns obj with the member key holding value. A present member keeps its
// place, a new one goes to the end. An obj that is empty, null or no object becomes
// a new object with that one member.
func Set(obj []byte, key string, value []byte) []byte {
	return Apply(obj, Edit{key, value})
}

// Delete returns obj without the member key.
func Delete(obj []byte, key string) []byte {
	return Apply(obj, Edit{key, nil})
}

// Apply makes several edits in one pass over obj; of two edits to one key the later
// one counts. Members that are not edited keep their bytes, only the white space
// between members goes. The result shares no memory with obj when something
// changed, and is obj itself when nothing did. So is an obj that is broken: mending
// it would hide that something is missing.
func Apply(obj []byte, edits ...Edit) []byte {
	if TypeOf(obj) != "object" {
		obj = []byte("{}")
	}
	size := len(obj)
	for _, e := range edits {
		size += len(e.Key) + len(e.Value) + 8
	}
	out := append(make([]byte, 0, size), '{')
	done := make([]bool, len(edits))
	changed := false
	index := lastEdits(edits)
	m := Object(obj)
	for m.Next() {
		k := find(edits, index, m.Key)
		if k < 0 {
			out = append(appendComma(out), obj[m.start:m.i]...)
			continue
		}
		changed = true
		if !done[k] && edits[k].Value != nil {
			out = append(appendComma(out), obj[m.start:m.valueAt]...)
			out = append(out, edits[k].Value...)
		}
		done[k] = true
	}
	if m.Err() != nil {
		return obj
	}
	for k, e := range edits {
		if done[k] || e.Value == nil || find(edits, index, e.Key) != k {
			continue
		}
		changed = true
		out = append(AppendText(appendComma(out), e.Key), ':')
		out = append(out, e.Value...)
	}
	if !changed {
		return obj
	}
	return append(out, '}')
}

// fewEdits is up to how many edits it is faster to look at each than to look one up.
const fewEdits = 8

// lastEdits returns where the last edit to each key is; nil for a few edits.
func lastEdits(edits []Edit) map[string]int {
	if len(edits) <= fewEdits {
		return nil
	}
	index := make(map[string]int, len(edits))
	for k, e := range edits {
		index[e.Key] = k
	}
	return index
}

// find returns the index of the last edit to key, -1 when there is none.
func find[K string | []byte](edits []Edit, index map[string]int, key K) int {
	if index != nil {
		if k, ok := index[string(key)]; ok {
			return k
		}
		return -1
	}
	for k := len(edits) - 1; k >= 0; k-- {
		if edits[k].Key == string(key) {
			return k
		}
	}
	return -1
}

func appendComma(out []byte) []byte {
	if len(out) > 1 {
		return append(out, ',')
	}
	return out
}
