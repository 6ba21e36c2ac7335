package sqlstore

// deep is what SQLite needs of a stack, about.
const deep = 24 << 10

// deepen makes that room at once. A stack grows by being copied to one of twice the
// size, and every frame on it is looked up for that: in a goroutine that is new, SQLite
// makes it happen four times, which takes about as long as a small query.
//
//go:noinline
func deepen(use bool) {
	if use { // never: that the frame would be here is enough
		var frame [deep]byte
		fill(&frame)
	}
}

//go:noinline
func fill(frame *[deep]byte) { clear(frame[:]) }
