//go:build ablation

package ablation

import "sync"

var one sync.Mutex

// Transaction begins the only transaction that there is then, and returns what ends it. flush makes all that was committed durable.
func Transaction(flush func() error) (end func()) {
	one.Lock()
	return func() {
		if On(NoGroupCommit) {
			flush() // of an error all later ones tell, too
		}
		one.Unlock()
	}
}
