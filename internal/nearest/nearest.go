// Package nearest finds the word that was meant by one that is mistyped.
package nearest

// Of returns the one of words that word is most like, or "" if it is like none: at most a third of its letters are
// wrong, missing, too many, or in each other's place, or it is the beginning of one word alone.
func Of(word string, words []string) (best string) {
	if len(word) > longest {
		return ""
	}
	least, beginning := len(word)/3+1, ""
	for _, w := range words {
		if n := distance(word, w); n < least || n == 1 && best == "" && len(word) > 1 {
			best, least = w, n
		}
		if len(word) > 1 && len(w) > len(word) && w[:len(word)] == word {
			if beginning != "" {
				beginning = "-" // several
			} else {
				beginning = w
			}
		}
	}
	if beginning != "" && beginning != "-" {
		return beginning
	}
	return best
}

// longest is the longest word that is looked at, in bytes.
const longest = 64

// distance is the least number of letters to change, insert, remove, or swap with the next one, each once, that make b
// of a.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now := make([]int, len(b)+1)
		now[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			now[j] = min(change, last[j]+1, now[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last = last, now
	}
	return last[len(b)]
}
